"""What can be read of it is read."""

import harbor.log


def whole():
    return harbor.log.note("whole")


def half(a, b
    return whole(


class After:
    def still_there(self):
        return whole()

    def torn(self:
