"""The sections of the page, one file each: a function from a report (and a language) to markup, or None."""
