// Slabs is a periodic grid of nx x ny x nz points, divided into planes of x among the ranks of a
// communicator, and its Fourier transform by FFTW-MPI. A grid with ny = nz = 1 is a line.
#pragma once

#include <fftw3-mpi.h>

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

using Complex = std::complex<double>;
using Field = std::vector<double>;
using Wave = std::vector<Complex>;

constexpr double kPi = 3.14159265358979323846;

class Slabs {
  public:
    Slabs(MPI_Comm planes, std::array<ptrdiff_t, 3> points, std::array<double, 3> lengths)
        : comm(planes), points(points), lengths(lengths) {
        const ptrdiff_t room = fftw_mpi_local_size_3d_transposed(points[0], points[1], points[2], comm,
                                                                 &count, &first, &columns_, &first_column_);
        work_ = fftw_alloc_complex(static_cast<size_t>(room));
        const unsigned out = line() ? 0 : FFTW_MPI_TRANSPOSED_OUT, in = line() ? 0 : FFTW_MPI_TRANSPOSED_IN;
        // FFTW_ESTIMATE: a plan that was measured may be another one after a restart, with other bits.
        forward_ = fftw_mpi_plan_dft_3d(points[0], points[1], points[2], work_, work_, comm, FFTW_FORWARD,
                                        FFTW_ESTIMATE | out);
        backward_ = fftw_mpi_plan_dft_3d(points[0], points[1], points[2], work_, work_, comm, FFTW_BACKWARD,
                                         FFTW_ESTIMATE | in);
        find_squares();
    }
    Slabs(const Slabs&) = delete;
    Slabs& operator=(const Slabs&) = delete;
    ~Slabs() {
        fftw_destroy_plan(forward_);
        fftw_destroy_plan(backward_);
        fftw_free(work_);
    }

    // Of this rank, in real space: planes [first, first + count) of x.
    size_t size() const { return static_cast<size_t>(count * points[1] * points[2]); }
    double cell() const { return lengths[0] * lengths[1] * lengths[2] / whole(); }
    double whole() const { return static_cast<double>(points[0] * points[1] * points[2]); }
    // Where point i along a dimension is; the middle of the box is 0.
    double place(int dimension, ptrdiff_t i) const {
        const auto d = static_cast<size_t>(dimension);
        return points[d] == 1 ? 0
                              : lengths[d] * (static_cast<double>(i) / static_cast<double>(points[d]) - 0.5);
    }
    // |G|^2 of this rank's plane waves, in the order of transformed().
    const Field& squares() const { return squares_; }

    // Multiplies each plane wave of `values` by a factor; the result is in real space.
    template <class Values, class Factor, class Result>
    void multiply(const Values& values, Factor factor, Result result) const {
        Complex* work = transformed(values);
        for (size_t g = 0; g < squares_.size(); ++g) work[g] *= factor(g) / whole();
        fftw_execute(backward_);
        for (size_t i = 0; i < size(); ++i) result(i, work[i]);
    }
    template <class Values>
    Complex* transformed(const Values& values) const {
        auto* work = reinterpret_cast<Complex*>(work_);
        for (size_t i = 0; i < size(); ++i) work[i] = values[i];
        fftw_execute(forward_);
        return work;
    }
    // Calls visit(index, x, y, z) for each point of this rank.
    template <class Visit>
    void each(Visit visit) const {
        size_t at = 0;
        for (ptrdiff_t i = 0; i < count; ++i)
            for (ptrdiff_t j = 0; j < points[1]; ++j)
                for (ptrdiff_t k = 0; k < points[2]; ++k)
                    visit(at++, place(0, first + i), place(1, j), place(2, k));
    }

    const MPI_Comm comm;
    const std::array<ptrdiff_t, 3> points;
    const std::array<double, 3> lengths;
    ptrdiff_t count = 0, first = 0;

  private:
    double wave(int dimension, ptrdiff_t g) const {
        const auto d = static_cast<size_t>(dimension);
        return 2 * kPi / lengths[d] * static_cast<double>(2 * g > points[d] ? g - points[d] : g);
    }
    // FFTW has no transform of a line that ends exchanged.
    bool line() const { return points[1] == 1; }
    // A transform ends with y and x exchanged: y is divided among the ranks then.
    void find_squares() {
        for (ptrdiff_t i = 0; line() && i < count; ++i)
            squares_.push_back(wave(0, first + i) * wave(0, first + i));
        for (ptrdiff_t j = 0; !line() && j < columns_; ++j)
            for (ptrdiff_t i = 0; i < points[0]; ++i)
                for (ptrdiff_t k = 0; k < points[2]; ++k) {
                    const double y = wave(1, first_column_ + j), x = wave(0, i), z = wave(2, k);
                    squares_.push_back(x * x + y * y + z * z);
                }
    }

    ptrdiff_t columns_ = 0, first_column_ = 0;
    fftw_complex* work_ = nullptr;
    fftw_plan forward_ = nullptr, backward_ = nullptr;
    Field squares_;
};
