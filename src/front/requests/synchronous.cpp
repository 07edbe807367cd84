#include "front/requests/synchronous.h"

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/requests/engine.h"

namespace fermata::front {

volatile uint32_t synchronous_ready;

// Messages of one communicator and tag to one rank, kept while synchronous ones among them are open. Each has
// a place, an odd number above those of the channel's earlier lives.
struct Channel {
    struct Gone {
        uint64_t place;
        Gone* next;
    };
    uint64_t comm;
    int32_t world, tag;
    uint64_t first, last;  // places since it was made
    uint32_t open;
    Gone* gone;     // cancelled or refused ones
    Channel* next;  // of its bucket
};

namespace {

constexpr size_t kBuckets = 256;
struct Channels {
    SpinLock lock;  // as the request pool's
    volatile uint32_t count;
    uint64_t last;  // place of channels that are no more
    Channel* bucket[kBuckets];
};
constinit Channels channels{};

// ---- receipts
struct Outgoing {
    Receipt receipt;
    mpi::RealRequest request;
    Outgoing* next;
};
struct Receipts {
    Outgoing* outgoing;
    uint64_t sent, received;
    uint32_t awaited;  // kUnread requests
    uint32_t serials;
    volatile uint32_t waiting_firsts;
};
constinit Receipts receipts{};

mpi::RealComm receipts_comm() noexcept {
    uint64_t twin = bridge()->private_world;
    return twin != 0 ? mpi::RealComm{twin} : to_real(mpi::FM_COMM_WORLD);  // 0: a unit test's lower half
}

Channel** find_channel(uint64_t comm, int32_t world, int tag) noexcept {
    uint64_t x =
        (comm * 31 + static_cast<uint32_t>(world)) * 0x9e3779b97f4a7c15ull + static_cast<uint32_t>(tag);
    Channel** link = &channels.bucket[((x ^ (x >> 32)) * 0xff51afd7ed558ccdull) >> 56];
    while (*link != nullptr && ((*link)->comm != comm || (*link)->world != world || (*link)->tag != tag))
        link = &(*link)->next;
    return link;
}

void complete(RequestObject* r) noexcept {
    if ((r->flags & kUnread) != 0 && --receipts.awaited == 0) clear_careful(kOwed);
    r->flags &= static_cast<uint8_t>(~(kTaken | kUnread));
    r->state = State::complete;
}

void apply(Receipt receipt) noexcept {
    auto* r = find_request(static_cast<mpi::Request>(receipt.request));
    if (r != nullptr && (r->flags & kUnread) != 0 && r->serial == receipt.serial) complete(r);
}

void take_receipts() noexcept {
    mpi::RealComm comm = receipts_comm();
    for (;;) {
        int found = 0;
        mpi::Status status{};
        if (LOWER(Iprobe)(mpi::FM_ANY_SOURCE, kReceiptTag, comm, &found, &status) != 0 || found == 0) return;
        Receipt receipt{};
        if (LOWER(Recv)(&receipt, sizeof receipt, real_byte(), status.source, kReceiptTag, comm, &status) !=
            0)
            fatal_line("fermata: cannot receive the receipt of a synchronous send: MPI_Recv failed");
        receipts.received++;
        apply(receipt);
    }
}

uint64_t reap_outgoing() noexcept {
    uint64_t open = 0;
    for (Outgoing** link = &receipts.outgoing; *link != nullptr;) {
        Outgoing* one = *link;
        int done = 0;
        LOWER(Test)(&one->request, &done, nullptr);
        if (done != 0) {
            *link = one->next;
            fm_free(one);
        } else {
            open++;
            link = &one->next;
        }
    }
    return open;
}

}  // namespace

// ---- the sender

void first_synchronous(Call& call) noexcept {
    add_watch(kChannels);
    front.clock->note_synchronous_sends();
    split::ThreadRecord* record = call.record();
    Naps naps(50);
    for (bool counted = false; front.clock->pending() || pending_checkpoint();) {
        if (front.clock->known() && front.clock->job_sends_synchronously()) break;
        if (front.clock->known() && !counted) {
            __atomic_fetch_add(&receipts.waiting_firsts, 1, __ATOMIC_RELAXED);
            counted = true;
            bridge()->poke_agent();
        }
        Careful careful(record);
        if (!stop_here(record)) sleep_ns(naps.next_ns());
    }
    receipts.waiting_firsts = 0;
    synchronous_ready = 1;
}

bool synchronous_waits() noexcept { return receipts.waiting_firsts != 0; }

void channel_open(RequestObject* r) noexcept {
    PoolGuard guard(channels.lock);
    Channel** link = find_channel(r->comm->uid, r->world, r->tag);
    if (*link == nullptr) {
        uint64_t place = channels.last != 0 ? channels.last + 2 : 1;
        *link = fm_new<Channel>(Channel{r->comm->uid, r->world, r->tag, place, place, 0, nullptr, nullptr});
        channels.count = channels.count + 1;
    }
    (*link)->open++;
    r->channel = *link;
    r->posted = (*link)->last;
}

void channel_close(RequestObject* r) noexcept {
    PoolGuard guard(channels.lock);
    Channel* channel = r->channel;
    r->channel = nullptr;
    if (channel == nullptr || --channel->open != 0) return;
    *find_channel(channel->comm, channel->world, channel->tag) = channel->next;
    channels.count = channels.count - 1;
    if (channels.last < channel->last) channels.last = channel->last;
    while (Channel::Gone* gone = channel->gone) {
        channel->gone = gone->next;
        fm_free(gone);
    }
    fm_free(channel);
}

uint64_t channel_count(int32_t world, const CommObject* comm, int tag) noexcept {
    if (channels.count == 0) return 0;
    PoolGuard guard(channels.lock);
    Channel* channel = *find_channel(comm->uid, world, tag);
    return channel != nullptr ? channel->last += 2 : 0;
}

void channel_uncount(int32_t world, const CommObject* comm, int tag) noexcept {
    if (channels.count == 0) return;
    PoolGuard guard(channels.lock);
    Channel* channel = *find_channel(comm->uid, world, tag);
    if (channel != nullptr && channel->last > channel->first) channel->last -= 2;
}

void channel_uncount(const RequestObject* r) noexcept {
    if (channels.count == 0) return;
    PoolGuard guard(channels.lock);
    Channel* channel = *find_channel(r->comm->uid, r->world, r->tag);
    uint64_t place = r->mode == kSynchronous ? r->posted : r->place;
    if (channel != nullptr && place >= channel->first)
        channel->gone = fm_new<Channel::Gone>(Channel::Gone{place, channel->gone});
}

bool read_by_now(RequestObject* r) noexcept {
    if ((r->flags & kUnread) != 0) take_receipts();
    return r->state == State::complete;
}

// ---- the receiver

void send_receipt(const QueuedMessage* message, int32_t world) noexcept {
    if (message->owed.serial == 0) return;
    if (world == front.world_rank) return apply(message->owed);
    reap_outgoing();
    auto* one = fm_new<Outgoing>(Outgoing{message->owed, {}, receipts.outgoing});
    receipts.outgoing = one;
    receipts.sent++;
    if (LOWER(Isend)(&one->receipt, sizeof one->receipt, real_byte(),
                     physical_rank(Rank(static_cast<uint32_t>(world))).number(), kReceiptTag, receipts_comm(),
                     &one->request) != 0)
        fatal_line("fermata: cannot send the receipt of a synchronous send: MPI_Isend failed");
}

// ---- the agent

ReceiptTotals drain_receipts() noexcept {
    take_receipts();
    uint64_t open = reap_outgoing();
    return {receipts.sent, receipts.received, open};
}

namespace {

// "Is the message still unread?"
struct Question {
    uint64_t comm;
    uint64_t later;  // messages of its channel sent after it
    int32_t source;  // my rank in the communicator
    int32_t tag;
    Receipt receipt;
};
static_assert(sizeof(Question) == 32);

uint64_t sent_after(const RequestObject* r) noexcept {
    uint64_t later = (r->channel->last - r->posted) / 2;
    for (const Channel::Gone* gone = r->channel->gone; gone != nullptr; gone = gone->next)
        later -= gone->place > r->posted;
    return later;
}

// 1: it waits in the queue, and its entry owes the receipt from now on.
char answer(const Question& q) noexcept {
    uint64_t waiting = 0;
    engine.queue.for_each(
        [&](QueuedMessage* m) { waiting += m->comm == q.comm && m->source == q.source && m->tag == q.tag; });
    if (q.later >= waiting) return 0;
    uint64_t place = waiting - 1 - q.later;
    engine.queue.for_each([&](QueuedMessage* m) {
        if (m->comm == q.comm && m->source == q.source && m->tag == q.tag && place-- == 0)
            m->owed = q.receipt;
    });
    return 1;
}

// Offsets of counts, and their sum.
int sums(const Vec<int>& counts, Vec<int>* offsets) {
    int sum = 0;
    for (size_t i = 0; i < counts.size(); i++) {
        (*offsets)[i] = sum;
        sum += counts[i];
    }
    return sum;
}

}  // namespace

int synchronous_settle() noexcept {
    mpi::RealComm world = receipts_comm();
    mpi::RealDatatype number = to_real(mpi::FM_INT);
    SpinGuard guard(library_lock);
    Vec<RequestObject*> mine;
    for_each_request([&](RequestObject* r) {
        if (r->what == What::send && r->state == State::active && (r->flags & kTaken) != 0) mine.push_back(r);
    });
    int here = mine.empty() ? 0 : 1, anywhere = 0;
    if (int rc = LOWER(Allreduce)(&here, &anywhere, 1, number, to_real(mpi::FM_MAX), world)) return rc;
    if (anywhere == 0) return 0;

    auto size = static_cast<size_t>(front.world_size);
    constexpr int kInts = sizeof(Question) / sizeof(int);
    Vec<int> to(size, 0), from(size, 0), to_at(size, 0), from_at(size, 0);
    for (const RequestObject* r : mine) to[static_cast<size_t>(r->world)] += 1;
    if (int rc = LOWER(Alltoall)(to.data(), 1, number, from.data(), 1, number, world)) return rc;
    Vec<Question> asked(static_cast<size_t>(sums(to, &to_at)));
    Vec<Question> heard(static_cast<size_t>(sums(from, &from_at)));
    Vec<RequestObject*> order(asked.size(), nullptr);
    Vec<int> next = to_at;
    for (RequestObject* r : mine) {
        auto at = static_cast<size_t>(next[static_cast<size_t>(r->world)]++);
        r->serial = ++receipts.serials != 0 ? receipts.serials : ++receipts.serials;
        asked[at] = Question{r->comm->uid, sent_after(r), r->comm->rank, r->tag,
                             Receipt{static_cast<uint32_t>(r->handle), r->serial}};
        order[at] = r;
    }
    auto scaled = [](Vec<int> list) {
        for (int& value : list) value *= kInts;
        return list;
    };
    if (int rc = LOWER(Alltoallv)(asked.data(), scaled(to).data(), scaled(to_at).data(), number, heard.data(),
                                  scaled(from).data(), scaled(from_at).data(), number, world))
        return rc;
    Vec<char> said(heard.size(), 0), told(asked.size(), 0);
    for (size_t i = 0; i < heard.size(); i++) said[i] = answer(heard[i]);
    if (int rc = LOWER(Alltoallv)(said.data(), from.data(), from_at.data(), real_byte(), told.data(),
                                  to.data(), to_at.data(), real_byte(), world))
        return rc;
    for (size_t i = 0; i < order.size(); i++) {
        if (told[i] == 0) {
            complete(order[i]);
            continue;
        }
        order[i]->flags = static_cast<uint8_t>((order[i]->flags & ~kTaken) | kUnread);
        receipts.awaited++;
        set_careful(kOwed);
    }
    return 0;
}

void synchronous_given_up() noexcept {
    for_each_request([](RequestObject* r) {
        if (r->what == What::send && r->state == State::active && (r->flags & kTaken) != 0) complete(r);
    });
}

}  // namespace fermata::front
