"""The numbers that src/root/plan/injection.cpp draws (SplitMix64), for programs that say what an injected job must become."""

MASK = (1 << 64) - 1


def mixed(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Draws:
    """Numbers from 0 to 1."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return (mixed(self.state) >> 11) * 2.0 ** -53
