#include "split/thread_pointer/redirect.h"

#include <linux/membarrier.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "split/address/code.h"
#include "split/address/raw.h"
#include "split/gate.h"
#include "split/thread_pointer/accesses.h"
#include "split/thread_pointer/clone_sites.h"
#include "split/thread_pointer/code_book.h"
#include "split/thread_pointer/functions.h"
#include "split/threads/fs_below.h"
#include "split/threads/records.h"

namespace fermata::split::thread_pointer {
namespace {

constexpr uint8_t kGs = 0x65;

// The one state of the process, written by the only thread there is or under the dynamic loader's lock.
struct State {
    std::string why = "nothing was changed";
    std::string directory;  // of the book of code
    // Objects whose code is in order, by base address and place of their name (which lives as long as they
    // do).
    std::vector<std::pair<uint64_t, const char*>> known;
};
State& state() {
    static auto* made = new State;  // threads may load libraries while the process ends
    return *made;
}

std::string change(const MappedObject& object, const Accesses& accesses) {
    if (accesses.prefixes.empty()) return {};
    auto all = [&](bool (*protect)(Range) noexcept) {
        return std::all_of(object.code.begin(), object.code.end(), protect);
    };
    if (!all(make_writable)) return object.name + ": its code cannot be made writable (SELinux execmod?)";
    for (uint64_t prefix : accesses.prefixes) *reinterpret_cast<uint8_t*>(prefix) = kGs;
    if (!all(make_executable)) return object.name + ": its code cannot be made executable again";
    return {};
}

// The objects that there are, and what is to be changed in those that are new.
struct Look {
    CodeBook book;
    std::vector<std::pair<uint64_t, const char*>> present;
    std::vector<std::pair<MappedObject, Accesses>> fresh;
    std::string doubt;
};

int look_at(dl_phdr_info* info, size_t, void* result) {
    auto* look = static_cast<Look*>(result);
    std::pair<uint64_t, const char*> id{info->dlpi_addr, info->dlpi_name};
    look->present.push_back(id);
    for (const auto& known : state().known)
        if (known == id) return 0;
    // The kernel's own code: no thread-locals, and not ours to write.
    if (std::strstr(info->dlpi_name, "linux-vdso") != nullptr) return 0;
    MappedObject object(*info);
    Accesses accesses = look->book.accesses_of(object);
    if (!accesses.doubt.empty() && look->doubt.empty()) look->doubt = accesses.doubt;
    look->fresh.emplace_back(std::move(object), std::move(accesses));
    return 0;
}

// The dynamic loader's words for debuggers (link.h). Null if it does not.
const r_debug* debugger_view() {
    for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_DEBUG) return reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
    return nullptr;
}

// Namespaces beside the program's (dlmopen, auditors): dl_iterate_phdr does not tell of what is in them.
bool other_namespaces() {
    constexpr int kExtended = 2;  // since glibc 2.35
    const r_debug* view = debugger_view();
    return view != nullptr && view->r_version >= kExtended &&
           reinterpret_cast<const r_debug_extended*>(view)->r_next != nullptr;
}

Look look_around() {
    Look look{CodeBook(state().directory), {}, {}, {}};
    if (other_namespaces())
        look.doubt = "libraries in a namespace of their own (LD_AUDIT, dlmopen)";
    else
        dl_iterate_phdr(look_at, &look);
    return look;
}

// "" or why one of the new objects could not be changed.
std::string change_new_objects(Look look) {
    if (!look.doubt.empty()) return look.doubt;
    for (const auto& [object, accesses] : look.fresh)
        if (std::string why = change(object, accesses); !why.empty()) return why;
    state().known = std::move(look.present);
    return {};
}

// A library came that needs FS. Other upper threads in the lower half have their own there: they must not
// meet its code.
void switch_from_now_on(const std::string& why) {
    state().why = why;
    threads::write_fs_from_now_on();  // before the table is read: see set_lower_side
    spdlog::info("crossings write the FS base from now on: {}", why);
    threads::ThreadTable* table = threads::table();
    if (table == nullptr) return;
    ThreadRecord* self = known_thread();
    for (ThreadRecord& record : table->record)
        if (record.lower_fs != 0) record.fs_below = record.lower_fs;
    // Against a thread that has just said `lower` and read the old value (Crossing).
    sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    bool ordered = sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    for (ThreadRecord& record : table->record) {
        bool below = record.run == Run::running && record.half == Half::lower && record.lower_fs != 0;
        if (&record == self || record.index == threads::kAgentIndex || (ordered && !below)) continue;
        if (record.run != Run::running) continue;
        std::string line = "fermata: " + why +
                           ", and it came while other threads were inside MPI: run with " +
                           "FERMATA_THREAD_POINTER=switch\n";
        sys(SYS_write, 2, line.data(), line.size());
        sys(SYS_exit_group, 70);
    }
    if (self == nullptr) return;
    // The functions that are being executed compare the canary when they end: it stays the one they know.
    constexpr uint64_t kCanary = 0x28;
    uint64_t canary;
    asm volatile("movq %%fs:%c1, %0" : "=r"(canary) : "i"(kCanary));
    *reinterpret_cast<uint64_t*>(self->lower_fs + kCanary) = canary;
    write_fs(self->lower_fs);
}

}  // namespace
}  // namespace fermata::split::thread_pointer

// The dynamic loader calls its breakpoint for debuggers when the list of objects has changed, before code of
// new ones runs (glibc, elf/dl-open.c). The breakpoint jumps here.
extern "C" __attribute__((visibility("hidden"))) void fermata_objects_changed() {
    using namespace fermata::split::thread_pointer;
    if (debugger_view()->r_state != r_debug::RT_CONSISTENT || fermata::split::threads::crossings_write_fs())
        return;
    if (std::string why = change_new_objects(look_around()); !why.empty()) switch_from_now_on(why);
}

namespace fermata::split::thread_pointer {
namespace {

int find_loader(dl_phdr_info* info, size_t, void* result) {
    if (info->dlpi_addr != getauxval(AT_BASE)) return 0;
    static_cast<std::optional<MappedObject>*>(result)->emplace(*info);
    return 1;
}

// The breakpoint is a function that does nothing but return, alone in 16 bytes.
std::string hear_of_objects() {
    const char* unknown =
        "the dynamic loader's breakpoint does not look as in the glibc versions known to Fermata";
    const r_debug* view = debugger_view();
    if (view == nullptr || view->r_brk == 0) return unknown;
    const uint64_t at = view->r_brk;
    std::optional<MappedObject> loader;
    dl_iterate_phdr(find_loader, &loader);
    if (!loader || !loader->extent().contains(at)) return unknown;
    constexpr uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    constexpr uint8_t kReturn = 0xc3;
    auto* code = reinterpret_cast<uint8_t*>(at);
    bool returns = code[0] == kReturn || (std::memcmp(code, kEndbr, 4) == 0 && code[4] == kReturn);
    if (!returns) return unknown;
    Range text = loader->extent();
    uint64_t next = text.end();
    for (Range function : functions_of(*loader))
        if (function.begin() > at && function.begin() < next) next = function.begin();
    if (next < at + kJump) return unknown;

    uint8_t* page = page_near(text);
    if (page == nullptr) return "no room near the dynamic loader";
    const uint8_t indirect[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
    void (*target)() = fermata_objects_changed;
    std::memcpy(page, indirect, sizeof indirect);
    std::memcpy(page + sizeof indirect, &target, sizeof target);
    if (!make_executable({uint64_t(page), uint64_t(page) + kPage}) || !make_writable(text))
        return "the dynamic loader cannot be made writable (SELinux execmod?)";
    write_jump(code, page);
    return make_executable(text) ? "" : "the dynamic loader cannot be made executable again";
}

// A thread pointer whose canary can be read (fs:0x28) and nothing else used: the words before it lead
// nowhere, what is below and behind is not there.
uint64_t make_poison() {
    constexpr uint64_t kBelow = 1 << 20, kCanaryEnd = 0x30;
    constexpr uint64_t kNowhere = 0xdead'0000'0000'0000;
    long rc = raw_mmap(0, kBelow + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (failed(rc)) std::abort();
    uint64_t page = static_cast<uint64_t>(rc) + kBelow;
    raw_mprotect(page, kPage, PROT_READ | PROT_WRITE);
    uint64_t pointer = page + kPage - kCanaryEnd;
    // The rest of this page is in reach of an access, too, and would give zeros: let those be an error as
    // well.
    auto* words = reinterpret_cast<uint64_t*>(page);
    for (uint64_t i = 0; i < kPage / sizeof *words; ++i) words[i] = kNowhere;
    return pointer;
}

}  // namespace

void redirect(const std::string& directory) {
    State& all = state();
    all.directory = directory;
    constexpr unsigned long kHwcap2Fsgsbase = 1 << 1;
    const char* wish = std::getenv("FERMATA_THREAD_POINTER");
    if (wish != nullptr && std::strcmp(wish, "switch") == 0)
        all.why = "FERMATA_THREAD_POINTER says so";
    else if ((getauxval(AT_HWCAP2) & kHwcap2Fsgsbase) == 0)
        all.why = "this machine does not let programs write the GS base";
    else if (threads::present_threads().size() != 1)
        all.why = "a library of the lower half started threads before main";
    else {
        Look look = look_around();  // before anything is written into code
        if (all.why = follow_new_threads(); all.why.empty()) {
            write_gs(read_fs());
            all.why = change_new_objects(std::move(look));
        }
        if (all.why.empty()) all.why = hear_of_objects();
        if (all.why.empty())
            threads::leave_fs(wish != nullptr && std::strcmp(wish, "poison") == 0 ? make_poison() : 0);
    }
}

const std::string& why_switched() { return state().why; }

}  // namespace fermata::split::thread_pointer
