"""A gate for CI: is a new model less robust than the one in use?"""
