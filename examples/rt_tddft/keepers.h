// Keepers save the state of a real-time propagation and bring it back: two samples of all orbitals, the step,
// the time, the kick, and how long the file of dipoles is. Two are written by hand, as programs have them:
// one file by collective MPI-IO, and a file per rank. The third is libfermata.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fermata/fermata.hpp>
#include <memory>
#include <optional>

#include "slabs.h"

struct Numbers {
    int64_t step = 0;
    double time = 0, kick = 0;
    int64_t position = 0;  // bytes of the file of dipoles
};

// This rank's part of the samples: orbitals, planes of x, y, z; all in one piece of memory each.
struct Samples {
    std::array<int64_t, 4> whole, first, mine;
    Wave now, before;
};

class Keeper {
  public:
    virtual ~Keeper() = default;
    virtual void save(const Numbers&, const Samples&) = 0;
    // False: there is nothing, this is a first start. Any error throws.
    virtual bool restore(Numbers&, Samples&) = 0;
    virtual void close() {}
};

// What both handwritten ones share: two places in turns, and a file that says which of them is whole.
class Handwritten : public Keeper {
  public:
    Handwritten(MPI_Comm comm, std::string directory) : comm_(comm), directory_(std::move(directory)) {
        MPI_Comm_rank(comm, &rank_);
        ::mkdir(directory_.c_str(), 0777);
    }
    void save(const Numbers& numbers, const Samples& samples) override {
        turn_ = 1 - turn_;
        agree(write(place(), numbers, samples), "cannot write " + place());
        bool good = true;
        if (rank_ == 0) {
            const std::string next = directory_ + "/newest.tmp";
            const int file = ::open(next.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
            good = file >= 0 && ::write(file, &turn_, sizeof turn_) == sizeof turn_ && ::fsync(file) == 0;
            if (file >= 0) ::close(file);
            good = good && ::rename(next.c_str(), newest().c_str()) == 0;
        }
        agree(good, "cannot write " + newest());
    }
    bool restore(Numbers& numbers, Samples& samples) override {
        int found = -1;
        if (rank_ == 0) {
            const int file = ::open(newest().c_str(), O_RDONLY);
            if (file >= 0 && ::read(file, &found, sizeof found) != sizeof found) found = -1;
            if (file >= 0) ::close(file);
        }
        MPI_Bcast(&found, 1, MPI_INT, 0, comm_);
        if (found < 0) return false;
        turn_ = found;
        agree(read(place(), numbers, samples), "cannot read " + place() + " (are there other ranks now?)");
        return true;
    }

  protected:
    virtual bool write(const std::string& path, const Numbers&, const Samples&) = 0;
    virtual bool read(const std::string& path, Numbers&, Samples&) = 0;
    const MPI_Comm comm_;
    int rank_ = 0;

  private:
    std::string newest() const { return directory_ + "/newest"; }
    std::string place() const { return directory_ + "/state-" + std::to_string(turn_); }
    void agree(bool good, const std::string& else_what) const {
        int all = good;
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm_);
        if (!all) throw std::runtime_error(else_what);
    }
    const std::string directory_;
    int turn_ = 1;
};

// One file; the ranks exchange what each of them writes, inside of MPI_File_write_all.
class OwnFile : public Handwritten {
    using Handwritten::Handwritten;
    static constexpr MPI_Offset kBegin = 4096;  // the numbers are before it

    bool write(const std::string& path, const Numbers& numbers, const Samples& samples) override {
        return opened(path, MPI_MODE_CREATE | MPI_MODE_WRONLY, [&](MPI_File file) {
            bool good = rank_ != 0 || MPI_File_write_at(file, 0, &numbers, sizeof numbers, MPI_BYTE,
                                                        MPI_STATUS_IGNORE) == MPI_SUCCESS;
            good &= with_views(file, samples, [&](bool now) {
                const Wave& wave = now ? samples.now : samples.before;
                return MPI_File_write_all(file, wave.data(), count(wave), MPI_C_DOUBLE_COMPLEX,
                                          MPI_STATUS_IGNORE);
            });
            return MPI_File_sync(file) == MPI_SUCCESS && good;
        });
    }
    bool read(const std::string& path, Numbers& numbers, Samples& samples) override {
        return opened(path, MPI_MODE_RDONLY, [&](MPI_File file) {
            bool good = MPI_File_read_at_all(file, 0, &numbers, sizeof numbers, MPI_BYTE,
                                             MPI_STATUS_IGNORE) == MPI_SUCCESS;
            return good & with_views(file, samples, [&](bool now) {
                       Wave& wave = now ? samples.now : samples.before;
                       MPI_Status status;
                       int read = 0;
                       const int rc =
                           MPI_File_read_all(file, wave.data(), count(wave), MPI_C_DOUBLE_COMPLEX, &status);
                       MPI_Get_count(&status, MPI_C_DOUBLE_COMPLEX, &read);
                       return rc == MPI_SUCCESS && read != count(wave) ? MPI_ERR_IO : rc;
                   });
        });
    }
    static int count(const Wave& wave) { return static_cast<int>(wave.size()); }

    template <class Use>
    bool opened(const std::string& path, int mode, Use use) const {
        MPI_File file;
        if (MPI_File_open(comm_, path.c_str(), mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) return false;
        const bool good = use(file);
        return MPI_File_close(&file) == MPI_SUCCESS && good;
    }
    // Calls move(true) for the newer sample, move(false) for the older one, each with this rank's part in
    // view.
    template <class Move>
    static bool with_views(MPI_File file, const Samples& samples, Move move) {
        int whole[4], first[4], mine[4];
        MPI_Offset bytes = sizeof(Complex);
        for (size_t d = 0; d < 4; ++d) {
            whole[d] = static_cast<int>(samples.whole[d]);
            first[d] = static_cast<int>(samples.first[d]);
            mine[d] = static_cast<int>(samples.mine[d]);
            bytes *= samples.whole[d];
        }
        // A part without elements is no subarray.
        MPI_Datatype part = MPI_C_DOUBLE_COMPLEX;
        const bool some = !samples.now.empty();
        if (some) MPI_Type_create_subarray(4, whole, mine, first, MPI_ORDER_C, MPI_C_DOUBLE_COMPLEX, &part);
        if (some) MPI_Type_commit(&part);
        bool good = true;
        for (bool now : {true, false}) {
            good &= MPI_File_set_view(file, kBegin + (now ? 0 : bytes), MPI_C_DOUBLE_COMPLEX, part, "native",
                                      MPI_INFO_NULL) == MPI_SUCCESS;
            good &= move(now) == MPI_SUCCESS;
        }
        if (some) MPI_Type_free(&part);
        return good;
    }
};

// A file per rank; another number of ranks cannot read them.
class OwnFiles : public Handwritten {
    using Handwritten::Handwritten;

    bool write(const std::string& path, const Numbers& numbers, const Samples& samples) override {
        const int file = ::open(mine(path).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
        if (file < 0) return false;
        const bool good = all<::write>(file, &numbers, sizeof numbers) &&
                          all<::write>(file, &samples.mine, sizeof samples.mine) &&
                          all<::write>(file, samples.now.data(), bytes(samples.now)) &&
                          all<::write>(file, samples.before.data(), bytes(samples.before)) &&
                          ::fsync(file) == 0;
        return ::close(file) == 0 && good;
    }
    bool read(const std::string& path, Numbers& numbers, Samples& samples) override {
        const int file = ::open(mine(path).c_str(), O_RDONLY);
        if (file < 0) return false;
        std::array<int64_t, 4> saved{};
        const bool good = all<::read>(file, &numbers, sizeof numbers) &&
                          all<::read>(file, &saved, sizeof saved) && saved == samples.mine &&
                          all<::read>(file, samples.now.data(), bytes(samples.now)) &&
                          all<::read>(file, samples.before.data(), bytes(samples.before));
        ::close(file);
        return good;
    }
    std::string mine(const std::string& path) const { return path + "-" + std::to_string(rank_); }
    static size_t bytes(const Wave& wave) { return wave.size() * sizeof(Complex); }
    template <auto move, class Bytes>
    static bool all(int file, Bytes* bytes, size_t size) {
        using Byte = std::conditional_t<std::is_const_v<Bytes>, const char, char>;
        auto* at = reinterpret_cast<Byte*>(bytes);
        while (size > 0) {
            const ssize_t moved = move(file, at, size);
            if (moved <= 0) return false;
            at += moved;
            size -= static_cast<size_t>(moved);
        }
        return true;
    }
};

class ByFermata : public Keeper {
  public:
    ByFermata(MPI_Comm comm, const std::string& directory, const std::string& options, Numbers& numbers,
              Samples& samples)
        : state_(comm, directory, options) {
        state_.protect_global("step", numbers.step);
        state_.protect_global("time", numbers.time);
        state_.protect_global("kick", numbers.kick);
        state_.protect_global("position", numbers.position);
        for (auto [name, wave] : {std::pair{"psi", &samples.now}, std::pair{"psi before", &samples.before}})
            state_.protect_array(name, wave->data(), list(samples.whole), list(samples.first),
                                 list(samples.mine));
    }
    void save(const Numbers& numbers, const Samples&) override { state_.save(numbers.step); }
    bool restore(Numbers&, Samples&) override { return state_.restore().has_value(); }
    void close() override { state_.close(); }

  private:
    static fermata::Numbers list(const std::array<int64_t, 4>& four) { return {four.begin(), four.end()}; }
    fermata::Checkpoints state_;
};

// Null: nothing is saved by the program.
inline std::unique_ptr<Keeper> make_keeper(const std::string& mode, MPI_Comm comm,
                                           const std::string& directory, const std::string& options,
                                           Numbers& numbers, Samples& samples) {
    const auto with = [&](const char* word) { return word + (options.empty() ? "" : "," + options); };
    if (mode == "none") return nullptr;
    if (mode == "own-file") return std::make_unique<OwnFile>(comm, directory);
    if (mode == "own-files") return std::make_unique<OwnFiles>(comm, directory);
    for (auto [name, word] : {std::pair{"shared", "layout=shared"}, std::pair{"files", "layout=files"},
                              std::pair{"memory", "memory=buddy"}})
        if (mode == name) return std::make_unique<ByFermata>(comm, directory, with(word), numbers, samples);
    throw std::runtime_error("mode=" + mode + ": none, own-file, own-files, shared, files or memory");
}
