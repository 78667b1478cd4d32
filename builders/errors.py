"""The one exception that the command line shows as a line of its own."""


class UserError(ValueError):
    """Something the user can put right. The message names the thing (file, row, flag) and the way out, in one line."""
