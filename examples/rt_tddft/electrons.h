// Electrons in an external potential, two in each orbital: their density, the potential that the density
// makes, the ground state by imaginary time, and a step in real time. Atomic units.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "slabs.h"

// Which electrons: `harmonic` ones (Hartree, Slater's exchange) in three dimensions, or those of `helium` in
// one (soft Coulomb interaction, exact exchange, which is half of Hartree's for two electrons).
struct System {
    enum Kind { harmonic, helium } kind = harmonic;
    double frequency = 0.25;
};

class Electrons {
  public:
    // `across`: the ranks that have the same planes, and other orbitals.
    Electrons(const System& system, const Slabs& slabs, MPI_Comm across)
        : system_(system),
          slabs_(slabs),
          across_(across),
          outside_(slabs.size()),
          kernel_(slabs.squares().size()) {
        const double w = system.frequency;
        if (system.kind == System::harmonic) {
            slabs.each([&](size_t i, double x, double y, double z) {
                outside_[i] = w * w / 2 * (x * x + y * y + z * z);
            });
            for (size_t g = 0; g < kernel_.size(); ++g)
                kernel_[g] = slabs.squares()[g] > 0 ? 4 * kPi / slabs.squares()[g] : 0;
            return;
        }
        // Distances are the shortest ones in the periodic box, from its first point.
        Field soft(slabs.size());
        slabs.each([&](size_t i, double x, double, double) {
            outside_[i] = -2 / std::sqrt(x * x + 1);
            const double d = slabs.lengths[0] / 2 - std::abs(x);
            soft[i] = slabs.cell() / std::sqrt(d * d + 1);
        });
        const Complex* wave = slabs.transformed(soft);
        for (size_t g = 0; g < kernel_.size(); ++g) kernel_[g] = wave[g].real();
    }

    // Of the orbitals of all ranks that have these planes.
    Field density(const std::vector<Wave>& psi, bool all_here = false) const {
        Field n(slabs_.size());
        for (const Wave& orbital : psi)
            for (size_t i = 0; i < n.size(); ++i) n[i] += 2 * std::norm(orbital[i]);
        if (!all_here)
            MPI_Allreduce(MPI_IN_PLACE, n.data(), static_cast<int>(n.size()), MPI_DOUBLE, MPI_SUM, across_);
        return n;
    }
    Field potential(const Field& n) const {
        Field v = hartree(n);
        for (size_t i = 0; i < v.size(); ++i)
            v[i] =
                outside_[i] + (system_.kind == System::helium ? v[i] / 2 : v[i] - std::cbrt(3 * n[i] / kPi));
        return v;
    }
    double dipole(const Field& n) const {
        double d = 0;
        slabs_.each([&](size_t i, double x, double, double) { d += x * n[i]; });
        return sum(d) * slabs_.cell();
    }
    // Of orbitals that are all here.
    double energy(const std::vector<Wave>& psi) const {
        const Field n = density(psi, true), h = hartree(n);
        double e = 0;
        for (const Wave& orbital : psi)
            kinetic(orbital, [&](size_t i, Complex t) { e += 2 * (std::conj(orbital[i]) * t).real(); });
        for (size_t i = 0; i < n.size(); ++i)
            e += outside_[i] * n[i] + (system_.kind == System::helium
                                           ? h[i] / 4 * n[i]
                                           : (h[i] / 2 - 0.75 * std::cbrt(3 * n[i] / kPi)) * n[i]);
        return sum(e) * slabs_.cell();
    }

    // exp(-tau H) by split operators again and again, with shorter and shorter tau.
    std::vector<Wave> ground_state(int bands, int rounds) const {
        std::vector<Wave> psi = guess(bands);
        for (double tau : {0.2, 0.05, 0.0125})
            for (int round = 0; round < rounds; ++round) {
                const Field v = potential(density(psi, true));
                for (Wave& orbital : psi) {
                    for (size_t i = 0; i < v.size(); ++i) orbital[i] *= std::exp(-tau / 2 * v[i]);
                    slabs_.multiply(
                        orbital, [&](size_t g) { return std::exp(-tau / 2 * slabs_.squares()[g]); },
                        [&](size_t i, Complex value) { orbital[i] = value * std::exp(-tau / 2 * v[i]); });
                }
                make_orthonormal(psi);
            }
        return psi;
    }

    // psi <- exp(-i dt H) psi with H of the potential `v`, by a Taylor series of fourth order.
    void step(std::vector<Wave>& psi, const Field& v, double dt) const {
        Wave term, next(slabs_.size());
        for (Wave& orbital : psi) {
            term = orbital;
            for (int order = 1; order <= 4; ++order) {
                kinetic(term, [&](size_t i, Complex t) {
                    next[i] = Complex(0, -dt / order) * (t + v[i] * term[i]);
                    orbital[i] += next[i];
                });
                std::swap(term, next);
            }
        }
    }
    void kick(std::vector<Wave>& psi, double momentum) const {
        for (Wave& orbital : psi)
            slabs_.each(
                [&](size_t i, double x, double, double) { orbital[i] *= std::polar(1.0, momentum * x); });
    }

  private:
    template <class Result>
    void kinetic(const Wave& orbital, Result result) const {
        slabs_.multiply(
            orbital, [&](size_t g) { return slabs_.squares()[g] / 2; }, result);
    }
    Field hartree(const Field& n) const {
        Field v(n.size());
        slabs_.multiply(
            n, [&](size_t g) { return kernel_[g]; }, [&](size_t i, Complex value) { v[i] = value.real(); });
        return v;
    }
    template <class Number>
    Number sum(Number mine) const {
        MPI_Allreduce(MPI_IN_PLACE, &mine, sizeof mine / sizeof(double), MPI_DOUBLE, MPI_SUM, slabs_.comm);
        return mine;
    }
    // Gaussians times x^a y^b z^c, by growing a + b + c.
    std::vector<Wave> guess(int bands) const {
        const bool line = slabs_.points[1] == 1;
        std::vector<Wave> psi;
        for (int degree = 0; static_cast<int>(psi.size()) < bands; ++degree)
            for (int a = degree; a >= 0; --a)
                for (int b = degree - a; b >= 0 && static_cast<int>(psi.size()) < bands; --b) {
                    if (line && a < degree) continue;
                    Wave& orbital = psi.emplace_back(slabs_.size());
                    slabs_.each([&](size_t i, double x, double y, double z) {
                        orbital[i] = std::pow(x, a) * std::pow(y, b) * std::pow(z, degree - a - b) *
                                     std::exp(-system_.frequency / 3 * (x * x + y * y + z * z));
                    });
                }
        make_orthonormal(psi);
        return psi;
    }
    void make_orthonormal(std::vector<Wave>& psi) const {
        for (size_t b = 0; b < psi.size(); ++b) {
            for (size_t a = 0; a <= b; ++a) {
                Complex overlap = 0;
                for (size_t i = 0; i < psi[b].size(); ++i) overlap += std::conj(psi[a][i]) * psi[b][i];
                overlap = sum(overlap) * slabs_.cell();
                for (size_t i = 0; i < psi[b].size(); ++i) {
                    if (a < b)
                        psi[b][i] -= overlap * psi[a][i];
                    else
                        psi[b][i] /= std::sqrt(overlap.real());
                }
            }
        }
    }

    const System system_;
    const Slabs& slabs_;
    const MPI_Comm across_;
    Field outside_, kernel_;
};
