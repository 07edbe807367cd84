// One thread hears of faults and of changes to the memory, and reads what is missed at once; others read in
// the background. They have a table of descriptors of their own: a child of the program that inherited the
// descriptor would keep it open, and its memory would wait for ever for somebody to answer.
//
// Changes. While the program unmaps, empties, moves or copies (fork) watched memory, the kernel refuses to
// fill any of it until the message about it has been read, and the program waits until then. So messages are
// read only while nobody fills: whatever was decided before a change is never carried out after it.
#include "image/pager.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <future>
#include <list>
#include <memory>
#include <shared_mutex>

#include "base/error.h"
#include "base/invariant.h"
#include "base/page.h"
#include "image/orphans.h"
#include "image/pages.h"
#include "image/whereabouts.h"

namespace fermata::image {
namespace {

// Filled at once: a change waits no longer than for this.
constexpr uint64_t kFill = 512 << 10;

constexpr uint64_t kFeatures =
    UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;

Fd faults_descriptor() {
    // For whoever may open the device (Linux 6.1); the system call wants privileges. Both also see faults
    // inside system calls.
    Fd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    int fd = device ? ::ioctl(device.get(), _IO(0xAA, 0x00), O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0) fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    return Fd(fd);
}

class Blocked {  // no handler of the program's runs on our threads
  public:
    Blocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

}  // namespace

int open_faults(std::string& why) {
    Fd fd = faults_descriptor();
    if (!fd) {
        why = fmt::format("no userfaultfd: {} (root has it, or who may open /dev/userfaultfd)",
                          std::strerror(errno));
        return -1;
    }
    uffdio_api api{UFFD_API, kFeatures, 0};
    if (::ioctl(fd.get(), UFFDIO_API, &api) == 0) {
        if (api.features & Orphans::kNeededFeature) return fd.release();
        why = "no userfaultfd that can end children whose memory cannot come any more (Linux 6.6 has it)";
        return -1;
    }
    why =
        fmt::format("no userfaultfd that follows children: {} (CAP_SYS_PTRACE has it)", std::strerror(errno));
    return -1;
}

class Pager::Work {
  public:
    Work(std::unique_ptr<Reader> reader, const Areas& areas, Hooks hooks, std::atomic<bool>& finished)
        : reader_(std::move(reader)),
          hooks_(std::move(hooks)),
          finished_(finished),
          wake_(::eventfd(0, EFD_CLOEXEC)) {
        if (!wake_) fail_errno("cannot make an eventfd");
        choose(areas);
    }

    // The whole life of the first thread; `ready` when the memory is watched, or with the reason why not.
    void run(std::promise<void> ready);
    void read_rest(unsigned threads) {
        wanted_ = std::max(wanted_.load(), threads);
        wake();
    }
    void stop() {
        stop_ = true;
        wake();
    }

  private:
    // A process that waits for memory: this one, and children it has made meanwhile.
    struct Process {
        Fd faults;
        Whereabouts where;
        bool child = false;
        std::atomic<bool> gone{false};
    };
    struct Fault {
        Process* process;
        uint64_t address;
    };
    enum State : uint8_t { missing, coming, there };
    enum class Filled { yes, no, changing };

    void choose(const Areas& areas);
    void keep_own_descriptors();
    void watch();
    void serve(Pages& buffer);
    void hear();
    void heard(Process& process, const uffd_msg& message);
    void answer(const Fault& fault, Pages& buffer);
    void zero(const Fault& fault);
    bool claim(uint32_t block);
    void bring(uint32_t block, Pages& buffer);
    void fill(uint64_t was, const char* data, uint64_t length);
    Filled copy(Process& process, uint64_t to, const char* data, uint64_t length);
    void in_background() noexcept;
    Areas huge_now() const;
    void make_huge(const Areas& areas) noexcept;
    void wake() {
        uint64_t one = 1;
        [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof one);
    }

    std::unique_ptr<Reader> reader_;
    Hooks hooks_;
    std::atomic<bool>& finished_;
    Fd wake_;

    // Fixed once chosen.
    Areas watched_;
    std::vector<uint32_t> order_;                    // the blocks that come later, as they lie in the files
    std::vector<std::vector<uint32_t>> parts_;       // of each block, which extents
    std::unique_ptr<std::atomic<uint8_t>[]> state_;  // of each block

    std::shared_mutex change_;  // filling: shared; reading messages: alone
    std::atomic<bool> wants_change_{false};
    std::list<Process> processes_;  // first: this one
    Orphans orphans_{watched_};     // the children's descriptors among them
    std::deque<Fault> faults_;      // of the first thread
    std::thread::id first_;

    std::atomic<size_t> next_{0}, left_{0};
    std::atomic<unsigned> wanted_{0};
    std::atomic<bool> stop_{false};
};

void Pager::Work::choose(const Areas& areas) {
    const auto& blocks = reader_->blocks();
    const auto& extents = reader_->extents();
    std::vector<bool> later(blocks.size(), true), used(blocks.size(), false);
    std::vector<bool> inside(extents.size());
    auto area = areas.begin();
    for (size_t i = 0; i < extents.size(); ++i) {
        while (area != areas.end() && area->end() <= extents[i].address) ++area;
        inside[i] = area != areas.end() && area->contains(memory_of(extents[i]));
        used[extents[i].block] = true;
        if (!inside[i]) later[extents[i].block] = false;
    }
    reader_->load([](const Extent& e) { return reinterpret_cast<void*>(e.address); }, 0,
                  [&](uint32_t block) { return !later[block]; });

    parts_.resize(blocks.size());
    state_ = std::make_unique<std::atomic<uint8_t>[]>(blocks.size());
    for (uint32_t i = 0; i < extents.size(); ++i)
        if (later[extents[i].block]) parts_[extents[i].block].push_back(i);
    for (uint32_t i = 0; i < blocks.size(); ++i) {
        state_[i] = later[i] && used[i] ? missing : there;
        if (later[i] && used[i]) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(blocks[a].source, blocks[a].offset) < std::pair(blocks[b].source, blocks[b].offset);
    });
    left_ = order_.size();
    area = areas.begin();
    // Mappings as a whole: parts of them would be mappings of their own, and mremap takes one at a time.
    for (const Extent& extent : extents) {
        if (!later[extent.block]) continue;
        while (area != areas.end() && area->end() <= extent.address) ++area;
        always(area != areas.end() && area->contains(memory_of(extent)),
               "memory that comes later, and nobody watches it");
        if (watched_.empty() || watched_.back() != *area) watched_.push_back(*area);
    }
}

// Closes all descriptors of the process here but those that are needed.
void Pager::Work::keep_own_descriptors() {
    if (::unshare(CLONE_FILES) != 0) fail_errno("cannot have descriptors of our own");
    std::vector<int> needed = reader_->descriptors();
    needed.insert(needed.end(), hooks_.descriptors.begin(), hooks_.descriptors.end());
    needed.push_back(wake_.get());
    needed.push_back(STDERR_FILENO);
    std::sort(needed.begin(), needed.end());
    unsigned from = 0;
    for (int fd : needed) {
        auto number = static_cast<unsigned>(fd);
        if (number > from) ::syscall(SYS_close_range, from, number - 1, 0);
        from = std::max(from, number + 1);
    }
    ::syscall(SYS_close_range, from, ~0u, 0);
}

void Pager::Work::watch() {
    std::string why;
    Process& self = processes_.emplace_back();
    self.faults = Fd(open_faults(why));
    if (!self.faults) throw Error(why);
    for (Range range : watched_) {
        uffdio_register all{{range.begin(), range.size()}, UFFDIO_REGISTER_MODE_MISSING, 0};
        constexpr uint64_t kNeeded = (1ull << _UFFDIO_COPY) | (1ull << _UFFDIO_ZEROPAGE);
        if (::ioctl(self.faults.get(), UFFDIO_REGISTER, &all) != 0 || (all.ioctls & kNeeded) != kNeeded)
            fail("faults at {:#x} cannot be watched: {}", range.begin(), std::strerror(errno));
        self.where.add(range);
    }
}

void Pager::Work::run(std::promise<void> ready) {
    first_ = std::this_thread::get_id();
    try {
        keep_own_descriptors();
        watch();
    } catch (...) {
        processes_.clear();
        return ready.set_exception(std::current_exception());
    }
    ready.set_value();
    std::list<std::thread> others;
    try {
        Pages buffer(kLargestBlock, "to read an image");
        while (left_ > 0 && !stop_) {
            while (others.size() < wanted_) others.emplace_back([this] { in_background(); });
            serve(buffer);
        }
    } catch (const std::exception& error) {
        hooks_.failed(error.what());
    }
    for (std::thread& thread : others) thread.join();
    orphans_.end();
    // Closing ends the watch, and wakes who waits: what is missing now is zeros. Here: the numbers are this
    // thread's.
    Areas huge = left_ == 0 && !processes_.empty() ? huge_now() : Areas{};
    processes_.clear();
    make_huge(huge);
    finished_ = left_ == 0;
    if (finished_ && hooks_.finished) hooks_.finished();
}

void Pager::Work::serve(Pages& buffer) {
    while (left_ > 0 && !stop_) {
        hear();
        while (!faults_.empty() && left_ > 0) {
            Fault fault = faults_.front();
            faults_.pop_front();
            answer(fault, buffer);
        }
        for (auto it = std::next(processes_.begin()); it != processes_.end();) {
            std::unique_lock lock(change_);
            if (it->gone) orphans_.remove(it->faults.get());
            it = it->gone ? processes_.erase(it) : std::next(it);
        }
        std::vector<pollfd> wait = {{wake_.get(), POLLIN, 0}};
        for (Process& process : processes_) wait.push_back({process.faults.get(), POLLIN, 0});
        ::poll(wait.data(), wait.size(), 1000);
        if (wait[0].revents) {
            uint64_t ignored;
            [[maybe_unused]] ssize_t n = ::read(wake_.get(), &ignored, sizeof ignored);
            return;  // threads may be wanted
        }
    }
}

// Reads all messages that are there; faults wait in a queue.
void Pager::Work::hear() {
    wants_change_ = true;
    std::unique_lock lock(change_);
    wants_change_ = false;
    for (Process& process : processes_) {  // a child that appears meanwhile comes last, and is heard, too
        uffd_msg messages[16];
        for (;;) {
            ssize_t n = ::read(process.faults.get(), messages, sizeof messages);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;
            for (size_t i = 0; i < static_cast<size_t>(n) / sizeof messages[0]; ++i)
                heard(process, messages[i]);
        }
    }
}

void Pager::Work::heard(Process& process, const uffd_msg& message) {
    auto up = [](uint64_t n) { return (n + kPage - 1) & ~(kPage - 1); };
    switch (message.event) {
        case UFFD_EVENT_PAGEFAULT:
            faults_.push_back({&process, message.arg.pagefault.address & ~(kPage - 1)});
            break;
        case UFFD_EVENT_REMOVE:  // MADV_DONTNEED and the like: zeros from now on
        case UFFD_EVENT_UNMAP:
            process.where.forget({message.arg.remove.start, up(message.arg.remove.end)});
            break;
        case UFFD_EVENT_REMAP:
            process.where.move(message.arg.remap.from, message.arg.remap.to, up(message.arg.remap.len));
            break;
        case UFFD_EVENT_FORK: {
            Process& child = processes_.emplace_back();
            child.faults = Fd(static_cast<int>(message.arg.fork.ufd));
            orphans_.add(child.faults.get());
            child.where = process.where;
            child.child = true;
            if (hooks_.wiped_in_children && !process.child)
                for (Range range : hooks_.wiped_in_children()) child.where.forget(range);
            break;
        }
    }
}

void Pager::Work::answer(const Fault& fault, Pages& buffer) {
    auto was = fault.process->where.was_of(fault.address);  // changed only by this thread
    if (!was) return zero(fault);
    const auto& extents = reader_->extents();
    auto after = std::upper_bound(extents.begin(), extents.end(), *was,
                                  [](uint64_t at, const Extent& e) { return at < e.address; });
    if (after == extents.begin() || *was - std::prev(after)->address >= std::prev(after)->length)
        return zero(fault);
    uint32_t block = std::prev(after)->block;
    if (claim(block)) return bring(block, buffer);
    // Else another thread is about to fill it, or has: whoever waits still must look again.
    if (state_[block] == there) {
        uffdio_range page{fault.address, kPage};
        ::ioctl(fault.process->faults.get(), UFFDIO_WAKE, &page);
    }
}

// The image has nothing there.
void Pager::Work::zero(const Fault& fault) {
    for (;;) {
        uffdio_zeropage zero{{fault.address, kPage}, 0, 0};
        if (::ioctl(fault.process->faults.get(), UFFDIO_ZEROPAGE, &zero) == 0) return;
        if (errno == EEXIST) {
            uffdio_range page{fault.address, kPage};
            ::ioctl(fault.process->faults.get(), UFFDIO_WAKE, &page);
            return;
        }
        if (errno != EAGAIN) {
            if (errno == ESRCH || errno == ENOSPC) fault.process->gone = true;
            return;  // unmapped meanwhile
        }
        hear();
        // The messages may have put something there.
        if (fault.process->where.was_of(fault.address)) return faults_.push_back(fault);
    }
}

bool Pager::Work::claim(uint32_t block) {
    uint8_t expected = missing;
    return state_[block].compare_exchange_strong(expected, coming);
}

void Pager::Work::bring(uint32_t block, Pages& buffer) {
    always(state_[block] == coming, "a block that is brought, and nobody has claimed it");
    reader_->read(reader_->blocks()[block], buffer.data());
    for (uint32_t i : parts_[block]) {
        const Extent& extent = reader_->extents()[i];
        for (uint64_t at = 0; at < extent.length && !stop_; at += kFill)
            fill(extent.address + at, buffer.data() + extent.skip + at, std::min(kFill, extent.length - at));
    }
    state_[block] = there;
    always(left_ > 0, "more blocks have come than were missing");
    if (--left_ == 0) wake();
}

void Pager::Work::fill(uint64_t was, const char* data, uint64_t length) {
    while (!stop_) {
        bool changing = false;
        while (wants_change_ && std::this_thread::get_id() != first_) std::this_thread::yield();
        {
            std::shared_lock lock(change_);
            for (Process& process : processes_)
                for (const Whereabouts::Part& part : process.where.now_of(Range::sized(was, length)))
                    if (!process.gone &&
                        copy(process, part.now, data + (part.was - was), part.length) == Filled::changing)
                        changing = true;
        }
        if (!changing) return;
        // Once the change is known, all of it again: what is there already stays.
        if (std::this_thread::get_id() == first_)
            hear();
        else
            ::usleep(50);
    }
}

Pager::Work::Filled Pager::Work::copy(Process& process, uint64_t to, const char* data, uint64_t length) {
    while (length > 0) {
        uffdio_copy copy{to, reinterpret_cast<uint64_t>(data), length, 0, 0};
        bool good = ::ioctl(process.faults.get(), UFFDIO_COPY, &copy) == 0;
        int code = good ? 0 : errno;
        uint64_t done = copy.copy > 0 ? static_cast<uint64_t>(copy.copy) : 0;
        if (!good && done == 0) {
            if (code == EAGAIN) return Filled::changing;
            if (code == ESRCH || code == ENOSPC) {  // that process has ended
                process.gone = process.child;
                return Filled::no;
            }
            if (code == ENOMEM) fail("no memory left for the program's at {:#x}", to);
            if (code == ENOENT && length > kPage) {
                // More than one mapping by now: page by page finds what there is of them.
                uint64_t half = length / 2 & ~(kPage - 1);
                Filled first = this->copy(process, to, data, half);
                Filled second = this->copy(process, to + half, data + half, length - half);
                return first == Filled::changing ? first : second;
            }
            if (code == EEXIST) {  // there already: whoever still waits for it looks again
                uffdio_range page{to, kPage};
                ::ioctl(process.faults.get(), UFFDIO_WAKE, &page);
            } else if (code != ENOENT) {
                fail("cannot fill the program's memory at {:#x}: {}", to, std::strerror(code));
            }
            done = kPage;
        }
        to += done;
        data += done;
        length -= done;
    }
    return Filled::yes;
}

void Pager::Work::in_background() noexcept {
    try {
        Pages buffer(kLargestBlock, "to read an image");
        for (size_t i; !stop_ && (i = next_++) < order_.size();)
            if (claim(order_[i])) bring(order_[i], buffer);
    } catch (const std::exception& error) {
        hooks_.failed(error.what());
    }
}

// Where the memory is by now that had huge pages.
Pager::Areas Pager::Work::huge_now() const {
    Areas now;
    for (Range range : hooks_.huge)
        for (const Whereabouts::Part& part : processes_.front().where.now_of(range))
            now.push_back(Range::sized(part.now, part.length));
    return now;
}

// Memory that is filled page by page gets none, and khugepaged takes minutes for a GiB. Linux 6.1; whoever
// waits for us does not wait for this.
void Pager::Work::make_huge(const Areas& areas) noexcept {
    for (Range range : areas)
        for (uint64_t at = (range.begin() + kHugePageSize - 1) / kHugePageSize * kHugePageSize;
             at + kHugePageSize <= range.end(); at += kHugePageSize) {
            if (stop_ || wanted_ > 1) return;
            ::madvise(reinterpret_cast<void*>(at), kHugePageSize, kCollapse);
        }
}

Pager::Pager(std::unique_ptr<Reader> reader, const Areas& areas, Hooks hooks)
    : work_(std::make_unique<Work>(std::move(reader), areas, std::move(hooks), finished_)) {
    std::promise<void> promise;
    std::future<void> ready = promise.get_future();
    {
        Blocked signals;
        thread_ = std::thread([work = work_.get()](std::promise<void> p) { work->run(std::move(p)); },
                              std::move(promise));
    }
    try {
        ready.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

Pager::~Pager() {
    work_->stop();
    if (thread_.joinable()) thread_.join();
}

void Pager::prefetch(unsigned threads) { work_->read_rest(threads); }

}  // namespace fermata::image
