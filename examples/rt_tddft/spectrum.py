#!/usr/bin/python3
"""The absorption spectrum of a dipole after a kick: a table and a picture.

    spectrum.py dipole.txt --kick K [--to 1.5] [--points 1500] [--table FILE] [--plot FILE.svg]

S(w) = 2 w / (pi kick) * integral of sin(w t) [d(t) - d(0)] (1 - 3 (t/T)^2 + 2 (t/T)^3) dt; its integral is the
number of electrons (f-sum rule). A line of oscillator strength f is f T / (2 pi) high.
"""
import argparse
import math
import pathlib

import numpy


def spectrum(times, dipoles, kick, frequencies):
    last, dt = times[-1], times[1] - times[0]
    window = 1 - 3 * (times / last) ** 2 + 2 * (times / last) ** 3
    signal = (dipoles - dipoles[0]) * window * dt
    return numpy.array([2 * w / (math.pi * kick) * numpy.dot(numpy.sin(w * times), signal) for w in frequencies])


def first_peak(frequencies, strengths, last):
    """Frequency and oscillator strength of the first line: a parabola through the highest of its points."""
    above = strengths > 0.2 * strengths.max()
    start = int(numpy.argmax(above))
    top = start + int(numpy.argmax(strengths[start:start + int(2 * math.pi / last / (frequencies[1] - frequencies[0])) + 2]))
    left, middle, right = strengths[top - 1:top + 2]
    shift = 0.5 * (left - right) / (left - 2 * middle + right)
    height = middle - 0.25 * (left - right) * shift
    return frequencies[top] + shift * (frequencies[1] - frequencies[0]), height * 2 * math.pi / last


def plot(frequencies, strengths, path):
    width, height, edge = 640, 320, 40
    low, high = min(0.0, strengths.min()), strengths.max()
    across = lambda w: edge + (width - 2 * edge) * w / frequencies[-1]
    up = lambda s: height - edge - (height - 2 * edge) * (s - low) / (high - low)
    points = " ".join(f"{across(w):.1f},{up(s):.1f}" for w, s in zip(frequencies, strengths))
    ticks = "".join(f'<text x="{across(w):.0f}" y="{height - edge + 16}" text-anchor="middle">{w:g}</text>'
                    for w in numpy.linspace(0, frequencies[-1], 6).round(3))
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/><path d="M{edge},{edge} V{height - edge} H{width - edge}" fill="none" stroke="black"/>'
        f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>{ticks}'
        f'<text x="{width // 2}" y="{height - 6}" text-anchor="middle">energy, Ha</text>'
        f'<text x="{edge}" y="{edge - 10}">strength, 1/Ha (top: {high:.3g})</text></svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dipole", type=pathlib.Path)
    parser.add_argument("--kick", type=float, required=True)
    parser.add_argument("--to", type=float, default=1.5)
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args()
    times, dipoles = numpy.loadtxt(options.dipole, unpack=True)
    frequencies = numpy.linspace(0, options.to, options.points + 1)
    strengths = spectrum(times, dipoles, options.kick, frequencies)
    if options.table:
        numpy.savetxt(options.table, numpy.column_stack([frequencies, strengths]), fmt="%.9g", header="energy/Ha strength*Ha")
    if options.plot:
        plot(frequencies, strengths, options.plot)
    at, strength = first_peak(frequencies, strengths, times[-1])
    print(f"first line {at:.6f} Ha, strength {strength:.5f}; sum {numpy.trapz(strengths, frequencies):.4f}")


if __name__ == "__main__":
    main()
