"""Stop a program with a checkpoint at a random moment, restart it, and give back the run as if it had been one."""


def run(*_):
    raise NotImplementedError
