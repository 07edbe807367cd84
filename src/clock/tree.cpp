#include "clock/tree.h"

#include <algorithm>

namespace fermata::clock {

namespace {

std::vector<int32_t> runs_of(const Entry& e) {
    std::vector<int32_t> runs;
    for (uint32_t i = 0; i < e.run_count; i++) {
        Run r = e.run(i);
        runs.push_back(r.first);
        runs.push_back(r.count);
    }
    return runs;
}

void put(Writer& w, Entry e, const std::vector<int32_t>& runs) {
    e.run_count = static_cast<uint32_t>(runs.size() / 2);
    w.entry(e);
    for (size_t i = 0; i + 1 < runs.size(); i += 2) w.run(Run{runs[i], runs[i + 1]});
}

// A table of entries, in as many messages as it takes.
class Parts {
  public:
    Parts(Kind kind, Epoch epoch, uint32_t flags)
        : kind_(kind), epoch_(epoch), flags_(flags), buffer_(kMaxMessage), w_(nullptr, 0) {
        begin();
    }
    void add(const Entry& e, const std::vector<int32_t>& runs) {
        if (w_.room() < kEntryBytes + runs.size() * 4) {
            flush(false);
            begin();
        }
        put(w_, e, runs);
        count_++;
    }
    std::deque<Bytes> finish() {
        flush(true);
        return std::move(parts_);
    }

  private:
    void begin() {
        w_ = Writer(buffer_.data(), buffer_.size());
        w_.header(kind_, epoch_).u32(0).u32(0).u32(flags_);
        count_ = 0;
    }
    void flush(bool last) {
        w_.patch_u32(kHeaderBytes, last);
        w_.patch_u32(kHeaderBytes + 4, count_);
        parts_.emplace_back(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(w_.size()));
    }
    Kind kind_;
    Epoch epoch_;
    uint32_t flags_;
    Bytes buffer_;
    Writer w_;
    uint32_t count_ = 0;
    std::deque<Bytes> parts_;
};

// Adds the rows to `parts`; a long member list takes several entries.
void put_row(Parts& parts, Uid uid, const Row& row) {
    Entry e;
    e.uid = uid;
    e.target = row.target;
    e.least_obliged = row.least_obliged;
    e.least_entered = row.least_entered;
    e.ranks = row.ranks;
    e.size = row.size;
    if (row.runs.empty()) parts.add(e, {});
    for (const auto& runs : row.runs) {
        parts.add(e, runs);
        e.ranks = 0;
    }
}

Bytes copy(ByteSpan message) { return Bytes(message.begin(), message.end()); }

template <class Fill>
Bytes small(Kind kind, Epoch epoch, Fill&& fill) {
    uint8_t buffer[64];
    Writer w(buffer, sizeof buffer);
    w.header(kind, epoch);
    fill(w);
    return Bytes(buffer, buffer + w.size());
}

bool take(std::deque<Bytes>& queue, Bytes* message) {
    if (queue.empty()) return false;
    *message = std::move(queue.front());
    queue.pop_front();
    return true;
}

}  // namespace

// ---- shared

void Merge::begin(size_t children) {
    rows_.clear();
    done_.assign(children, false);
    missing_ = children;
    flags_ = 0;
}

bool Merge::add(size_t child, Reader& r) {
    if (child >= done_.size() || done_[child]) return false;
    uint32_t last = r.u32(), count = r.u32();
    flags_ |= r.u32();
    for (uint32_t i = 0; i < count; i++) {
        Entry e;
        if (!r.entry(&e)) return false;
        Row& row = rows_[static_cast<uint64_t>(e.uid)];
        row.target = std::max(row.target, e.target);
        row.least_obliged = std::min(row.least_obliged, e.least_obliged);
        row.least_entered = std::min(row.least_entered, e.least_entered);
        row.ranks += e.ranks;
        row.size = std::max(row.size, e.size);
        if (e.run_count) row.runs.insert(runs_of(e));
    }
    if (!r.finished()) return false;
    if (last) {
        done_[child] = true;
        missing_--;
    }
    return true;
}

bool Demanded::fresh(uint64_t n, Labels wanted) {
    if (n < number || (n == number && (wanted & ~labels) == 0)) return false;
    labels = n == number ? labels | wanted : wanted;
    number = n;
    return true;
}

bool RaiseFilter::fresh(const Entry& e) {
    Seen& seen = seen_[static_cast<uint64_t>(e.uid)];
    if (e.target > seen.instance) {
        seen.instance = e.target;
        seen.parts.clear();
        if (e.run_count) seen.parts.insert(runs_of(e));
        return true;
    }
    return e.target == seen.instance && e.run_count != 0 && seen.parts.insert(runs_of(e)).second;
}

void RaiseFilter::note(Uid uid, Instance k, const std::set<std::vector<int32_t>>& parts) {
    Seen& seen = seen_[static_cast<uint64_t>(uid)];
    if (k <= seen.instance) return;
    seen.instance = k;
    seen.parts = parts;
}

// ---- node

bool Node::refuse(const char* reason) {
    error_ = reason;
    return false;
}

bool Node::from_child(size_t child, ByteSpan message) {
    Reader r(message.data(), message.size());
    Header h;
    if (child >= children_) return refuse("clock message from an unknown child");
    if (!r.header(&h)) return refuse("clock message of an unknown version or kind");
    if (h.epoch != epoch_) return true;  // of an epoch that is over
    switch (h.kind) {
        case Kind::report:
            if (reported_ || !merge_.add(child, r))
                return refuse("clock message REPORT is malformed or comes twice");
            if (merge_.complete()) forward_report();
            return true;
        case Kind::raise: {
            Entry e;
            if (!r.entry(&e) || !r.finished()) return refuse("clock message RAISE is malformed");
            if (raises_.fresh(e)) up_.push_back(copy(message));
            return true;
        }
        case Kind::demand: {
            Rank from = r.rank(), to = r.rank();
            uint64_t n = r.u64();
            Labels wanted = r.u64();
            if (!r.finished()) return refuse("clock message DEMAND is malformed");
            if (demands_[{from, to}].fresh(n, wanted)) up_.push_back(copy(message));
            return true;
        }
        case Kind::licence:
        case Kind::revoke:
            up_.push_back(copy(message));
            return true;
        case Kind::safe: {
            Version version = r.u32();
            if (!r.finished() || version > version_) return refuse("clock message SAFE is malformed");
            safe_[child] = version;
            forward_safe();
            return true;
        }
        default:
            return refuse("clock message of a kind that only travels downwards");
    }
}

void Node::forward_report() {
    Parts parts(Kind::report, epoch_, merge_.flags());
    for (auto& [uid, row] : merge_.rows()) {
        below_.insert(uid);
        if (!row.settled()) put_row(parts, static_cast<Uid>(uid), row);
    }
    for (Bytes& part : parts.finish()) up_.push_back(std::move(part));
    merge_.rows().clear();
    reported_ = true;
}

void Node::forward_safe() {
    // All children at the newest version: every raise, demand and licence they sent before it is already
    // above.
    for (int64_t version : safe_)
        if (version != int64_t{version_}) return;
    if (safe_sent_ == int64_t{version_}) return;
    safe_sent_ = version_;
    up_.push_back(small(Kind::safe, epoch_, [&](Writer& w) { w.u32(version_); }));
}

bool Node::from_parent(ByteSpan message) {
    Reader r(message.data(), message.size());
    Header h;
    if (!r.header(&h)) return refuse("clock message of an unknown version or kind");
    if (h.kind == Kind::intent) {
        epoch_ = h.epoch;
        reported_ = false;
        merge_.begin(children_);
        below_.clear();
        raises_.clear();
        demands_.clear();
        safe_.assign(children_, -1);
        safe_sent_ = -1;
        version_ = 0;
        up_.clear();
        down_.push_back(copy(message));
        return true;
    }
    if (h.epoch != epoch_) return true;
    switch (h.kind) {
        case Kind::targets:
            forward_targets(r, h);
            if (!r.finished()) return refuse("clock message TARGETS is malformed");
            return true;
        case Kind::news: {
            Version version = r.u32();
            uint32_t count = r.u32();
            for (uint32_t i = 0; i < count && r.ok(); i++) switch (static_cast<News>(r.u32())) {
                    case News::target: {
                        Entry e;
                        if (r.entry(&e) && e.run_count == 0) raises_.note(e.uid, e.target);
                        break;
                    }
                    case News::channel:
                        r.u64();
                        r.u64();
                        r.u64();
                        break;
                    case News::licence:
                        r.u64();
                        break;
                    case News::revoke:
                        r.u32();
                        break;
                    default:
                        return refuse("clock message NEWS has an unknown item");
                }
            if (!r.finished() || version != version_ + 1)
                return refuse("clock message NEWS is malformed or out of order");
            version_ = version;
            down_.push_back(copy(message));
            return true;
        }
        case Kind::freeze:
            down_.push_back(copy(message));
            return true;
        default:
            return refuse("clock message of a kind that only travels upwards");
    }
}

// Rows whose members have all reported are of no use where none of them lives. The others may still be
// registered below (a communicator in creation), so they go everywhere.
void Node::forward_targets(Reader& r, Header h) {
    uint32_t last = r.u32(), count = r.u32();
    Parts parts(Kind::targets, h.epoch, r.u32());
    for (uint32_t i = 0; i < count && r.ok(); i++) {
        Entry e;
        if (!r.entry(&e)) return;
        if (e.run_count == 0) raises_.note(e.uid, e.target);
        if (e.run_count == 0 && e.ranks == e.size && !below_.contains(static_cast<uint64_t>(e.uid))) continue;
        parts.add(e, runs_of(e));
    }
    for (Bytes& part : parts.finish()) {
        Writer(part.data(), part.size()).patch_u32(kHeaderBytes, 0);
        down_.push_back(std::move(part));
    }
    if (last) Writer(down_.back().data(), down_.back().size()).patch_u32(kHeaderBytes, 1);
}

bool Node::next_up(Bytes* message) { return take(up_, message); }
bool Node::next_down(Bytes* message) { return take(down_, message); }

// ---- root

bool Root::refuse(const char* reason) {
    error_ = reason;
    return false;
}

void Root::push(Bytes message) { down_.push_back(std::move(message)); }

void Root::begin(Epoch epoch, uint64_t now_ns) {
    epoch_ = epoch;
    phase_ = Phase::request;
    merge_.begin(children_);
    targets_.clear();
    raises_.clear();
    channels_.clear();
    news_.clear();
    down_.clear();
    version_ = 0;
    safe_.assign(children_, -1);
    changed_ns_ = now_ns;
    patience_ = options_.stuck_ns;
    licence_out_ = false;
    resorts_ = credit_ = 0;
    counts_ = {};
    push(small(Kind::intent, epoch_, [](Writer&) {}));
    if (children_ == 0) phase_ = Phase::declared;
}

bool Root::from_child(size_t child, ByteSpan message, uint64_t now_ns) {
    Reader r(message.data(), message.size());
    Header h;
    if (child >= children_) return refuse("clock message from an unknown child");
    if (!r.header(&h)) return refuse("clock message of an unknown version or kind");
    if (h.epoch != epoch_ || (phase_ != Phase::request && phase_ != Phase::converge)) return true;
    counts_.in++;
    counts_.in_bytes += message.size();
    if (phase_ == Phase::request && h.kind != Kind::report) return refuse("clock message before the targets");
    switch (h.kind) {
        case Kind::report:
            if (phase_ != Phase::request || !merge_.add(child, r))
                return refuse("clock message REPORT is malformed or comes twice");
            if (merge_.complete()) send_targets();
            break;
        case Kind::raise: {
            Entry e;
            if (!r.entry(&e) || !r.finished()) return refuse("clock message RAISE is malformed");
            if (!raises_.fresh(e)) break;
            Item item{News::target, e, runs_of(e)};
            item.entry.run_bytes = nullptr;
            news_.push_back(std::move(item));
            counts_.raises++;
            break;
        }
        case Kind::demand: {
            Rank from = r.rank(), to = r.rank();
            uint64_t n = r.u64();
            Labels wanted = r.u64();
            if (!r.finished()) return refuse("clock message DEMAND is malformed");
            if (!channels_[{from, to}].fresh(n, wanted)) break;
            Item item{News::channel, {}, {}, from, to, n, wanted};
            news_.push_back(std::move(item));
            counts_.demands++;
            break;
        }
        case Kind::licence: {
            Rank from = r.rank();
            uint32_t credit = r.u32();
            if (!r.finished()) return refuse("clock message LICENCE is malformed");
            news_.push_back(Item{News::licence, {}, {}, from, 0, credit});
            counts_.licences++;
            break;
        }
        case Kind::revoke: {
            Rank from = r.rank();
            if (!r.finished()) return refuse("clock message REVOKE is malformed");
            news_.push_back(Item{News::revoke, {}, {}, from, 0, 0});
            break;
        }
        case Kind::safe: {
            Version version = r.u32();
            if (!r.finished() || version > version_) return refuse("clock message SAFE is malformed");
            safe_[child] = version;
            break;
        }
        default:
            return refuse("clock message of a kind that only travels downwards");
    }
    changed_ns_ = now_ns;
    look_for_safe();
    return true;
}

void Root::send_targets() {
    Parts parts(Kind::targets, epoch_, merge_.flags());
    for (auto& [uid, row] : merge_.rows()) {
        if (row.settled() || row.target == 0) continue;  // 0 is what everybody assumes
        raises_.note(static_cast<Uid>(uid), row.target, row.runs);
        put_row(parts, static_cast<Uid>(uid), row);
        counts_.rows++;
    }
    for (Bytes& part : parts.finish()) push(std::move(part));
    merge_.rows().clear();
    phase_ = Phase::converge;
}

void Root::look_for_safe() {
    if (phase_ != Phase::converge || !news_.empty() || licence_out_) return;
    for (int64_t version : safe_)
        if (options_.fault_any_version ? version < 0 : version != int64_t{version_}) return;
    phase_ = Phase::declared;
    push(small(Kind::freeze, epoch_, [](Writer&) {}));
}

void Root::send_news() {
    // Each message is one version, so that "safe at version v" means: has applied all of it.
    Bytes buffer(kMaxMessage);
    for (size_t next = 0; next < news_.size();) {
        Writer w(buffer.data(), buffer.size());
        w.header(Kind::news, epoch_).u32(++version_).u32(0);
        uint32_t count = 0;
        for (; next < news_.size(); next++, count++) {
            const Item& item = news_[next];
            if (w.room() < 4 + kEntryBytes + item.runs.size() * 4) break;
            w.u32(static_cast<uint32_t>(item.what));
            if (item.what == News::target) put(w, item.entry, item.runs);
            if (item.what == News::channel) w.rank(item.from).rank(item.to).u64(item.number).u64(item.wanted);
            if (item.what == News::licence) w.rank(item.from).u32(static_cast<uint32_t>(item.number));
            if (item.what == News::revoke) w.rank(item.from);
        }
        w.patch_u32(kHeaderBytes + 4, count);
        push(Bytes(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(w.size())));
    }
    news_.clear();
}

bool Root::next_down(Bytes* message) {
    if (!news_.empty() && phase_ == Phase::converge) send_news();
    if (!take(down_, message)) return false;
    counts_.out++;
    counts_.out_bytes += message->size();
    return true;
}

void Root::poll(uint64_t now_ns) {
    if (phase_ != Phase::converge || options_.stuck_ns == 0) return;
    if (licence_out_) {
        if (now_ns - licence_since_ < options_.licence_ns) return;
        news_.push_back(Item{News::revoke, {}, {}, kRootRank, 0, 0});
        licence_out_ = false;
        changed_ns_ = now_ns;
        return;
    }
    if (now_ns < changed_ns_ || now_ns - changed_ns_ < patience_) return;
    credit_++;
    news_.push_back(Item{News::licence, {}, {}, kRootRank, 0, credit_});
    licence_out_ = true;
    licence_since_ = now_ns;
    patience_ *= 2;
    resorts_++;
}

bool Root::waiting_for(size_t child) const {
    if (phase_ == Phase::request) return !merge_.complete();
    return phase_ == Phase::converge && safe_[child] != int64_t{version_};
}

size_t Root::waiting_for() const {
    size_t count = 0;
    for (size_t child = 0; child < children_; child++) count += waiting_for(child);
    return count;
}

}  // namespace fermata::clock
