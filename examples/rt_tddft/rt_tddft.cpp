// Electrons that were kicked: time-dependent density-functional theory in real time, with plane waves. The
// dipole, whose Fourier transform is the absorption spectrum (spectrum.py), goes to a file; the state is
// saved in one of several ways, and a later start goes on from it.
//
//     rt_tddft [system=harmonic|helium] [n=16] [length=16] [bands=1] [groups=1] [frequency=0.25] [rounds=60]
//              [dt=0.05] [steps=200] [kick=0.001] [every=0]
//              [mode=none|own-file|own-files|shared|files|memory] [dir=rt-state] [options=WORDS]
//              [out=dipole.txt] [die=STEP]
//
// The ranks are `groups` times planes of x: each group has its share of the `bands` orbitals. `options` are
// words of fermata_open(). `die`: the last rank kills itself there. Exponential midpoint: psi(t + dt) =
// exp(-i dt H) psi(t), with the potential at t + dt / 2 as 1.5 V[psi(t)] - 0.5 V[psi(t - dt)], so that the
// state is two samples.
#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "electrons.h"
#include "keepers.h"

namespace {

class Words {
  public:
    Words(int argc, char** argv) {
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            const size_t at = word.find('=');
            if (at == std::string::npos || words_.find(word.substr(0, at)) == words_.end())
                throw std::runtime_error("'" + word + "' is no word of rt_tddft");
            words_[word.substr(0, at)] = word.substr(at + 1);
        }
    }
    const std::string& text(const char* name) const { return words_.at(name); }
    double number(const char* name) const {
        char* end = nullptr;
        const double value = std::strtod(text(name).c_str(), &end);
        if (end == text(name).c_str() || *end)
            throw std::runtime_error(std::string(name) + "=" + text(name) + ": a number");
        return value;
    }
    int whole(const char* name) const { return static_cast<int>(number(name)); }

  private:
    std::map<std::string, std::string> words_ = {
        {"system", "harmonic"}, {"n", "16"},           {"length", "16"},      {"bands", "1"},
        {"groups", "1"},        {"frequency", "0.25"}, {"rounds", "60"},      {"dt", "0.05"},
        {"steps", "200"},       {"kick", "0.001"},     {"every", "0"},        {"mode", "none"},
        {"dir", "rt-state"},    {"options", ""},       {"out", "dipole.txt"}, {"die", "-1"}};
};

// The file of dipoles; rank 0 has it.
class Dipoles {
  public:
    Dipoles(const std::string& path, bool mine) : path_(path), mine_(mine) {}
    ~Dipoles() {
        if (file_) std::fclose(file_);
    }
    // Goes on after `position` bytes; what was said after the checkpoint will be said again.
    void open(int64_t position) {
        if (!mine_) return;
        struct stat now {};
        if (position > 0 && (::stat(path_.c_str(), &now) != 0 || now.st_size < position))
            throw std::runtime_error(path_ + " is shorter than when the state was saved");
        file_ = std::fopen(path_.c_str(), position > 0 ? "r+" : "w");
        if (!file_ || ::ftruncate(::fileno(file_), position) != 0 || std::fseek(file_, 0, SEEK_END) != 0)
            throw std::runtime_error("cannot write " + path_);
    }
    void say(double time, double dipole) {
        if (mine_ && std::fprintf(file_, "%.17g %.17g\n", time, dipole) < 0)
            throw std::runtime_error("cannot write " + path_);
    }
    // How long it is, all of it on storage.
    int64_t position() {
        if (!mine_) return 0;
        if (std::fflush(file_) != 0 || ::fdatasync(::fileno(file_)) != 0)
            throw std::runtime_error("cannot write " + path_);
        return std::ftell(file_);
    }

  private:
    const std::string path_;
    const bool mine_;
    std::FILE* file_ = nullptr;
};

class Run {
  public:
    explicit Run(const Words& words)
        : words_(words),
          world_(split(words)),
          slabs_(world_.planes, points(words), lengths(words)),
          electrons_(system(words), slabs_, world_.across),
          samples_(part(words)),
          keeper_(make_keeper(words.text("mode"), MPI_COMM_WORLD, words.text("dir"), words.text("options"),
                              numbers_, samples_)),
          dipoles_(words.text("out"), world_.rank == 0) {}

    void go() {
        const double began = MPI_Wtime();
        numbers_.kick = words_.number("kick");
        if (keeper_ && keeper_->restore(numbers_, samples_)) {
            dipoles_.open(numbers_.position);
            say("restored step %" PRId64 " in %.6f s\n", numbers_.step, MPI_Wtime() - began);
        } else {
            start();
        }
        propagate();
        say("end step %" PRId64 " time %.6f dipole %.17g kick %.17g\n", numbers_.step, numbers_.time, dipole_,
            numbers_.kick);
        say("seconds %.6f checkpoints %d in %.6f s\n", MPI_Wtime() - began, saves_, saving_);
    }

  private:
    struct World {
        int rank, group, groups;
        MPI_Comm planes, across;
        bool last;
    };
    static World split(const Words& words) {
        World w{0, 0, words.whole("groups"), MPI_COMM_NULL, MPI_COMM_NULL, false};
        int size;
        MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (w.groups < 1 || size % w.groups != 0)
            throw std::runtime_error("groups= must divide the number of ranks");
        w.last = w.rank == size - 1;
        const int planes = size / w.groups;
        w.group = w.rank / planes;
        MPI_Comm_split(MPI_COMM_WORLD, w.group, w.rank, &w.planes);
        MPI_Comm_split(MPI_COMM_WORLD, w.rank % planes, w.rank, &w.across);
        return w;
    }
    static System system(const Words& words) {
        if (words.text("system") == "helium") return {System::helium, 1};
        if (words.text("system") != "harmonic") throw std::runtime_error("system=harmonic or system=helium");
        return {System::harmonic, words.number("frequency")};
    }
    static std::array<ptrdiff_t, 3> points(const Words& words) {
        const ptrdiff_t n = words.whole("n"), other = words.text("system") == "helium" ? 1 : n;
        if (n < 4) throw std::runtime_error("n= is 4 at least");
        return {n, other, other};
    }
    static std::array<double, 3> lengths(const Words& words) {
        const double l = words.number("length"), other = words.text("system") == "helium" ? 1 : l;
        return {l, other, other};
    }
    Samples part(const Words& words) const {
        const int64_t bands = words.whole("bands"), from = bands * world_.group / world_.groups,
                      to = bands * (world_.group + 1) / world_.groups;
        if (bands < 1) throw std::runtime_error("bands= is 1 at least");
        const auto& n = slabs_.points;
        Samples s{{bands, n[0], n[1], n[2]},
                  {from, slabs_.first, 0, 0},
                  {to - from, slabs_.count, n[1], n[2]},
                  {},
                  {}};
        s.now.resize(static_cast<size_t>(to - from) * slabs_.size());
        s.before = s.now;
        return s;
    }
    std::vector<Wave> orbitals(const Wave& sample) const {
        std::vector<Wave> psi;
        const auto size = static_cast<ptrdiff_t>(slabs_.size());
        for (ptrdiff_t b = 0; b < samples_.mine[0]; ++b)
            psi.emplace_back(sample.begin() + b * size, sample.begin() + (b + 1) * size);
        return psi;
    }
    static void put(const std::vector<Wave>& psi, Wave& sample) {
        auto at = sample.begin();
        for (const Wave& orbital : psi) at = std::copy(orbital.begin(), orbital.end(), at);
    }

    // Every group finds all orbitals and keeps its own.
    void start() {
        std::vector<Wave> psi = electrons_.ground_state(words_.whole("bands"), words_.whole("rounds"));
        say("ground state: energy %.9f\n", electrons_.energy(psi));
        psi.erase(psi.begin(), psi.begin() + static_cast<ptrdiff_t>(samples_.first[0]));
        psi.resize(static_cast<size_t>(samples_.mine[0]));
        put(psi, samples_.before);  // the kick changes no density
        electrons_.kick(psi, numbers_.kick);
        put(psi, samples_.now);
        dipoles_.open(0);
    }
    void propagate() {
        const double dt = words_.number("dt");
        const int64_t steps = words_.whole("steps"), every = words_.whole("every"), begin = numbers_.step;
        const int64_t die = world_.last ? words_.whole("die") : -1;
        std::vector<Wave> psi = orbitals(samples_.now);
        Field v_before = electrons_.potential(electrons_.density(orbitals(samples_.before)));
        for (;; ++numbers_.step, numbers_.time += dt) {
            if (keeper_ && every > 0 && numbers_.step > begin && numbers_.step % every == 0) save();
            if (numbers_.step == die) ::raise(SIGKILL);
            const Field n = electrons_.density(psi), v_now = electrons_.potential(n);
            dipole_ = electrons_.dipole(n);
            dipoles_.say(numbers_.time, dipole_);
            if (numbers_.step >= steps) break;
            Field middle(n.size());
            for (size_t i = 0; i < middle.size(); ++i) middle[i] = 1.5 * v_now[i] - 0.5 * v_before[i];
            v_before = v_now;
            put(psi, samples_.before);
            electrons_.step(psi, middle, dt);
            put(psi, samples_.now);
        }
        const double began = MPI_Wtime();
        if (keeper_) keeper_->close();
        saving_ += MPI_Wtime() - began;
    }
    void save() {
        const double began = MPI_Wtime();
        numbers_.position = dipoles_.position();
        keeper_->save(numbers_, samples_);
        saving_ += MPI_Wtime() - began;
        ++saves_;
    }
    template <class... Values>
    void say(const char* form, Values... values) const {
        if (world_.rank != 0) return;
        std::printf(form, values...);
        std::fflush(stdout);
    }

    const Words& words_;
    const World world_;
    const Slabs slabs_;
    const Electrons electrons_;
    Numbers numbers_;
    Samples samples_;
    const std::unique_ptr<Keeper> keeper_;
    Dipoles dipoles_;
    double dipole_ = 0, saving_ = 0;
    int saves_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    try {
        Run(Words(argc, argv)).go();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rt_tddft: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}
