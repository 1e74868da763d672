"""Beside the tests, as upstream has it."""


def scale(d):
    return d ** -0.5
