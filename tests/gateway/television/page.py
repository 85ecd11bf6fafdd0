"""The figures as a page."""


def page(results):
    return ""
