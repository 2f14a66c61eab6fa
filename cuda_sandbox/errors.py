"""The base of every error that is addressed to the person who called us."""


class UserError(Exception):
    """Something the caller can put right: a wrong file, key or machine.

    The message says what is wrong, where, and what to do; the command line shows it on stderr
    without a traceback and exits with ``exit_code``.
    """

    exit_code = 2
