// A lower half without MPI: the smallest main that makes a split process. Used by split_test.cpp.
//
//     mini-lower run PROGRAM ARGS…      starts a program in the window
//     mini-lower load FILE              continues a program saved by MiniBridge::save
//     mini-lower hop                    started by MiniBridge::hop, beside the program
//
// MINI_LOWER_BUSY=1 lets a thread of the lower half use memory, threads, libraries and files all the time.
#include "mini_lower.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sys.h"
#include "split/alloc/lower_alloc.h"
#include "split/fds/descriptors.h"
#include "split/gate.h"
#include "split/hop/second_half.h"
#include "split/loader/loader.h"
#include "split/memory/memory.h"
#include "split/partition/partition.h"
#include "split/thread_pointer/redirect.h"
#include "split/vdso/vdso.h"

using fermata::Range;
using namespace fermata::split;

namespace {

uint64_t lower_fs;

[[noreturn]] void die(const char* text) {
    std::fprintf(stderr, "mini-lower: %s\n", text);
    _exit(99);
}

// Runs with the lower half's thread pointer.
__attribute__((noinline)) void save_now(const MiniPoint* point, const char* path) {
    try {
        if (std::getenv("MINI_LOWER_SAMPLE")) sample_memory_flags();
        MemoryTable table = collect_memory().table;
        make_readable(table);
        std::string head = encode(table);
        uint64_t size = head.size(), at = reinterpret_cast<uint64_t>(point);
        std::FILE* out = std::fopen(path, "w");
        if (!out) die("cannot write the image");
        std::fwrite(&at, 8, 1, out);
        std::fwrite(&size, 8, 1, out);
        std::fwrite(head.data(), 1, size, out);
        for (const MapEntry& e : table.maps)
            for (const Range& run : e.runs)
                if (std::fwrite(run.pointer(), 1, run.size(), out) != run.size())
                    die("cannot write the image");
        std::fclose(out);
        restore_protection(table);
    } catch (const std::exception& e) {
        die(e.what());
    }
}

int save(MiniPoint* point, const char* path) {
    point->fs = read_fs();
    write_fs(lower_fs);
    save_now(point, path);
    write_fs(point->fs);
    return 0;
}

// Words from one lower half to the next.
struct HandedOver {
    MiniPoint* point;
    uint64_t vdso;
    LayoutNotes layout;
};

__attribute__((noinline)) void hop_now(MiniPoint* point) {
    try {
        const HandedOver now{point, vdso_image(), layout_notes()};
        hop::Wanted wanted{.program = std::filesystem::read_symlink("/proc/self/exe"),
                           .arguments = {"mini-lower", "hop"},
                           .handed_over = {reinterpret_cast<const char*>(&now), sizeof now}};
        for (char** one = environ; *one != nullptr; ++one) wanted.environment.emplace_back(*one);
        hop::SecondHalf second(wanted);
        const long child = fermata::sys(SYS_clone, SIGCHLD);
        if (child == 0) second.enter();
        int status = 0;
        if (child < 0 || waitpid(static_cast<pid_t>(child), &status, 0) != child) die("no second lower half");
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    } catch (const std::exception& e) {
        die(e.what());
    }
}

int hop_away(MiniPoint* point, const char*) {
    point->fs = read_fs();
    write_fs(lower_fs);
    hop_now(point);
    __builtin_unreachable();
}

MiniBridge bridge{save, hop_away};

[[noreturn]] void go_on(MiniPoint* point) {
    *point->bridge = &bridge;
    release_rseq();
    write_fs(point->fs);
    asm volatile(
        "mov %0, %%rdx\n"
        "mov (%%rdx), %%rbx\nmov 8(%%rdx), %%rbp\nmov 16(%%rdx), %%r12\nmov 24(%%rdx), %%r13\n"
        "mov 32(%%rdx), %%r14\nmov 40(%%rdx), %%r15\nmov 48(%%rdx), %%rsp\n"
        "mov $1, %%eax\njmp *56(%%rdx)"
        :
        : "r"(point)
        : "memory");
    __builtin_unreachable();
}

[[noreturn]] void load(const char* path) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    uint64_t at, size;
    if (bytes.size() < 16) die("no image");
    std::memcpy(&at, bytes.data(), 8);
    std::memcpy(&size, bytes.data() + 8, 8);
    MemoryTable table = decode({bytes.data() + 16, size});
    const char* data = bytes.data() + 16 + size;
    load_memory(table, [&](void* to, size_t n, uint64_t offset) { std::memcpy(to, data + offset, n); });
    if (std::string error = check(); !error.empty()) die(error.c_str());
    go_on(reinterpret_cast<MiniPoint*>(at));
}

void* nothing(void*) { return malloc(1000); }

volatile bool stop_being_busy;

// Everything that could make the lower half's memory land in the window.
void* be_busy(void*) {
    std::vector<void*> blocks;
    for (int round = 0; !stop_being_busy; ++round) {
        pthread_t thread;
        void* block;
        if (pthread_create(&thread, nullptr, nothing, nullptr) != 0) die("pthread_create");
        pthread_join(thread, &block);
        blocks.push_back(block);
        void* last = malloc(size_t(1) << (10 + round % 14));
        blocks.push_back(last);
        if (blocks.size() > 64) {
            for (void* b : blocks) free(b);
            blocks.clear();
        }
        void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
        std::string error = check();
        if (!error.empty()) die(error.c_str());
        if (library) {
            struct link_map* map;
            dlinfo(library, RTLD_DI_LINKMAP, &map);
            if (upper_address(map->l_addr)) die("dlopen in the window");
            dlclose(library);
        }
        char here;
        if (!last || upper_address(reinterpret_cast<uint64_t>(&here)) ||
            upper_address(reinterpret_cast<uint64_t>(last)))
            die("a stack or a block in the window");
        std::FILE* file = std::fopen("/dev/null", "r");
        if (!file || !lower_descriptor(fileno(file))) die("a low descriptor");
        std::fclose(file);
        void* grown = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        grown = mremap(grown, 8192, 1 << 20, MREMAP_MAYMOVE);
        if (grown == MAP_FAILED || upper_address(reinterpret_cast<uint64_t>(grown))) die("mremap");
        static_cast<char*>(grown)[(1 << 20) - 1] = 1;
        munmap(grown, 1 << 20);
        // As in every process, a wanted address is given while it is free.
        void* const wanted = reinterpret_cast<void*>((kLowerArea.begin() + kLowerArea.end()) / 2);
        void* first = mmap(wanted, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* second = mmap(wanted, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (first != wanted || second == wanted || upper_address(reinterpret_cast<uint64_t>(second)))
            die("a wanted address");
        munmap(first, 8192);
        munmap(second, 8192);
        usleep(2000);
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::optional<std::string> handed_over = hop::SecondHalf::handed_over();
        HandedOver notes{};
        if (handed_over) {
            std::memcpy(&notes, handed_over->data(), sizeof notes);
            resume_layout(notes.layout);
            spare_upper_addresses();
        } else {
            ensure_layout(argv);
        }
        prepare_lower();
        thread_pointer::redirect();
        if (!lower_patch_report().empty()) die(lower_patch_report().c_str());
        begin_descriptors();
        int early = open("/dev/null", O_RDONLY);  // stands for what MPI_Init opens
        void* early_block = malloc(100 << 20);
        end_descriptors();
        if (!lower_descriptor(early)) die("MPI_Init's descriptors are low");
        partition(handed_over.has_value());
        free(early_block);
        if (std::string error = check(); !error.empty()) die(error.c_str());
        lower_fs = read_fs();
        if (std::getenv("MINI_LOWER_BUSY")) {
            pthread_t thread;
            if (pthread_create(&thread, nullptr, be_busy, nullptr) != 0) die("pthread_create");
        }
        if (handed_over) {
            refill_vdso(notes.vdso);
            go_on(notes.point);
        }
        if (argc >= 3 && std::strcmp(argv[1], "load") == 0) load(argv[2]);
        if (argc < 3 || std::strcmp(argv[1], "run") != 0) die("usage: mini-lower run PROGRAM ARGS…");
        ProgramSpec spec;
        spec.program = argv[2];
        spec.arguments.assign(argv + 3, argv + argc);
        if (const char* fronts = std::getenv("MINI_LOWER_FRONTS")) spec.front_dir = fronts;
        spec.bridge = reinterpret_cast<const Bridge*>(&bridge);
        StartedProgram program = load_program(spec);
        enter_program(program);
    } catch (const std::exception& e) {
        die(e.what());
    }
}
