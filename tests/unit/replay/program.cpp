// Random programs are correct by construction: every action is appended to its participants in one global
// order, in which it could run alone; handles are waited for later.
#include "program.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace fermata::replay::test {

struct Word {
    const char* text;
    Do what;
    Kind kind;
    bool rooted;
};
static const Word kWords[] = {
    {"send", Do::send, {}, false},
    {"recv", Do::receive, {}, false},
    {"probe", Do::probe, {}, false},
    {"iprobe", Do::iprobe, {}, false},
    {"wait", Do::wait, {}, false},
    {"any", Do::any, {}, false},
    {"test", Do::test, {}, false},
    {"drop", Do::drop, {}, false},
    {"print", Do::print, {}, false},
    {"barrier", Do::collective, Kind::barrier, false},
    {"bcast", Do::collective, Kind::bcast, true},
    {"scatter", Do::collective, Kind::scatter, true},
    {"gather", Do::collective, Kind::gather, true},
    {"reduce", Do::collective, Kind::reduce, true},
    {"allreduce", Do::collective, Kind::allreduce, false},
    {"allgather", Do::collective, Kind::allgather, false},
    {"alltoall", Do::collective, Kind::alltoall, false},
    {"scan", Do::collective, Kind::scan, false},
    {"rscatter", Do::collective, Kind::reduce_scatter, false},
    {"new", Do::collective, Kind::create, false},
    {"free", Do::collective, Kind::free, false},
};

static int number(const std::string& text, size_t* at) {
    if (*at < text.size() && text[*at] == '*') return ++*at, -1;
    if (*at < text.size() && text[*at] == '?') return ++*at, kProbed;
    int n = 0;
    while (*at < text.size() && isdigit(text[*at])) n = n * 10 + (text[(*at)++] - '0');
    return n;
}

static std::vector<int> numbers(const std::string& text, size_t* at) {
    std::vector<int> all{number(text, at)};
    while (*at < text.size() && text[*at] == ',') all.push_back(number(text, &++*at));
    return all;
}

static Op parse_word(const std::string& text) {
    size_t at = 0;
    while (at < text.size() && isalpha(text[at])) at++;
    std::string name = text.substr(0, at);
    Op op;
    for (int pass = 0;; pass++) {
        for (const Word& word : kWords)
            if (name == word.text) {
                op.what = word.what;
                op.kind = word.kind;
                pass = 9;
            }
        if (pass >= 9) break;
        if (name.empty() || (name[0] != 'i' && name[0] != 's')) throw std::runtime_error("word: " + text);
        if (name[0] == 's') op.synchronous = true;
        name.erase(0, 1);
    }
    if (op.what == Do::wait || op.what == Do::any || op.what == Do::test || op.what == Do::drop)
        op.handles = numbers(text, &at);
    else if (at < text.size() && (isdigit(text[at]) || text[at] == '*' || text[at] == '?'))
        op.peer = number(text, &at);
    while (at < text.size()) {
        char c = text[at++];
        if (c == '!') op.in_place = true;
        if (c == '=') op.handle = number(text, &at);
        if (c == '/') op.members = numbers(text, &at);
        if (c != '.') continue;
        c = text[at++];
        if (c == 'L') op.large = true;
        if (c == 'W') op.slow = true;
        if (c == 't') op.tag = number(text, &at);
        if (c == 'c') op.comm = number(text, &at);
    }
    return op;
}

Program parse(const std::vector<std::string>& ranks) {
    Program program;
    for (const std::string& text : ranks) {
        program.ranks.emplace_back();
        size_t at = 0;
        while (at < text.size()) {
            size_t end = std::min(text.find(' ', at), text.size());
            if (end > at) program.ranks.back().push_back(parse_word(text.substr(at, end - at)));
            at = end + 1;
        }
        program.ranks.back().push_back(Op{.what = Do::finalize});
    }
    return program;
}

bool Program::sends_synchronously() const {
    for (const auto& ops : ranks)
        for (const Op& op : ops)
            if (op.synchronous) return true;
    return false;
}

static std::string joined(const std::vector<int>& all) {
    std::string text;
    for (int one : all) {
        if (!text.empty()) text += ',';
        text += std::to_string(one);
    }
    return text;
}
static void add(std::string* text, const char* mark, int number) {
    *text += mark;
    *text += number == kProbed ? "?" : number < 0 ? "*" : std::to_string(number);
}

static std::string text_of(const Op& op) {
    std::string text;
    if (op.what == Do::finalize) return text;
    if (op.handle >= 0) text += 'i';
    if (op.synchronous) text += 's';
    const Word* found = nullptr;
    for (const Word& word : kWords)
        if (word.what == op.what && (op.what != Do::collective || word.kind == op.kind)) found = &word;
    text += found->text;
    text += joined(op.handles);
    bool peer =
        op.what == Do::send || op.what == Do::receive || op.what == Do::probe || op.what == Do::iprobe;
    if (peer || found->rooted || (op.what == Do::collective && op.kind == Kind::create))
        add(&text, "", op.peer);
    if (!op.members.empty()) text += '/';
    text += joined(op.members);
    if (op.tag != 0) add(&text, ".t", op.tag);
    if (op.comm != 0) add(&text, ".c", op.comm);
    if (op.large) text += ".L";
    if (op.slow) text += ".W";
    if (op.in_place) text += '!';
    if (op.handle >= 0) add(&text, "=", op.handle);
    return text + ' ';
}

std::string Program::text() const {
    std::string all;
    for (const auto& ops : ranks) {
        all += "  \"";
        for (const Op& op : ops) all += text_of(op);
        all += "\"\n";
    }
    return all;
}

// ---- drawn

namespace {

class Drawing {
  public:
    Drawing(std::mt19937_64& random, int actions)
        : random_(random), ranks_(2 + pick(3)), ops_(size_t(ranks_)) {
        comms_.push_back(Comm{0, {}, false, pick(3) == 0, pick(3) == 0});
        for (int r = 0; r < ranks_; r++) comms_[0].members.push_back(r);
        open_.resize(size_t(ranks_));
        synchronous_ = pick(4) == 0;
        for (int i = 0; i < actions; i++) action();
        for (int r = 0; r < ranks_; r++) {
            while (!open_[size_t(r)].empty()) wait(r);
            ops_[size_t(r)].push_back(Op{.what = Do::finalize});
        }
    }
    Program program() { return Program{ops_}; }

  private:
    struct Comm {
        int index;
        std::vector<int> members;
        bool freed;
        // The same for all receives on it: else one could take what another one needs.
        bool any_source, any_tag;
    };
    int pick(int below) { return static_cast<int>(random_() % uint64_t(below)); }
    void add(int rank, Op op) { ops_[size_t(rank)].push_back(std::move(op)); }
    int new_handle(int rank) {
        open_[size_t(rank)].push_back(++handles_);
        return handles_;
    }
    Comm& some_comm() {
        for (;;)
            if (Comm& comm = comms_[size_t(pick(static_cast<int>(comms_.size())))];
                !comm.freed && comm.members.size() > 1)
                return comm;
    }
    // Some of what is open; a later wait gets what a test left (waits for what is told already are skipped).
    void wait(int rank) {
        auto& open = open_[size_t(rank)];
        if (open.empty()) return;
        Op op{.what = Do::wait};
        size_t count = 1 + size_t(pick(static_cast<int>(open.size())));
        int how = pick(4);
        for (size_t i = 0; i < count; i++) {
            size_t at = size_t(pick(static_cast<int>(open.size())));
            op.handles.push_back(open[at]);
            if (how == 0 || how == 1) continue;  // stays open
            open.erase(open.begin() + static_cast<ptrdiff_t>(at));
        }
        if (how == 0) op.what = Do::any;
        if (how == 1) {
            op.what = Do::test;
            op.handles.resize(1);
        }
        add(rank, op);
    }
    // A receive of any source may take a message that is sent later: so there no sender waits for its
    // receiver.
    void message() {
        Comm& comm = some_comm();
        int n = static_cast<int>(comm.members.size());
        int to = comm.members[size_t(pick(n))];
        bool wild = comm.any_source;
        int tag = pick(2), count = 1 + pick(3);
        std::vector<Op> receives;
        for (int i = 0; i < count; i++) {
            int from = comm.members[size_t(pick(n))];
            if (from == to) continue;
            Op send{.what = Do::send, .peer = to, .tag = tag, .comm = comm.index};
            send.synchronous = !wild && synchronous_ && pick(3) == 0;
            (wild ? send.slow : send.large) = pick(3) == 0;
            if (pick(2) == 0) send.handle = new_handle(from);
            add(from, send);
            if (send.handle >= 0 && !send.synchronous && pick(6) == 0) {
                add(from, Op{.what = Do::drop, .handles = {send.handle}});
                open_[size_t(from)].pop_back();
            }
            receives.push_back(Op{.what = Do::receive,
                                  .peer = wild ? -1 : from,
                                  .tag = comm.any_tag ? -1 : tag,
                                  .comm = comm.index});
        }
        for (Op& receive : receives) {
            Op probe = receive;
            probe.what = pick(2) == 0 ? Do::probe : Do::iprobe;
            // A probe of a message that an open receive may take could wait for ever.
            bool safe = probe.what == Do::iprobe || open_[size_t(to)].empty();
            if (pick(5) == 0 && safe) {
                add(to, probe);
                if (wild && pick(2) == 0) receive.peer = kProbed;
            }
            if (pick(2) == 0) receive.handle = new_handle(to);
            add(to, receive);
        }
        for (size_t i = 0; i < receives.size() && pick(3) == 0; i++) wait(to);
    }
    void collective() {
        static const Kind kinds[] = {Kind::barrier,  Kind::bcast,  Kind::scatter,
                                     Kind::gather,   Kind::reduce, Kind::allreduce,
                                     Kind::alltoall, Kind::scan,   Kind::reduce_scatter};
        Comm& comm = some_comm();
        Op op{.what = Do::collective, .comm = comm.index};
        op.kind = kinds[pick(9)];
        bool rooted = op.kind == Kind::bcast || op.kind == Kind::scatter || op.kind == Kind::gather ||
                      op.kind == Kind::reduce;
        if (rooted) op.peer = comm.members[size_t(pick(static_cast<int>(comm.members.size())))];
        op.in_place = pick(4) == 0 &&
                      (op.kind == Kind::allreduce || op.kind == Kind::alltoall || op.kind == Kind::scan);
        bool nonblocking = pick(3) == 0;
        for (int rank : comm.members) {
            Op mine = op;
            if (nonblocking) mine.handle = new_handle(rank);
            add(rank, mine);
        }
    }
    // Open sends to and receives from a rank that is blocked in one could wait for ever, so all are closed.
    void close(const std::vector<int>& ranks) {
        for (int rank : ranks)
            while (!open_[size_t(rank)].empty()) wait(rank);
    }
    void creation() {
        if (comms_.size() > 3) return;
        Comm parent = some_comm();
        std::vector<int> members;
        for (int rank : parent.members)
            if (pick(4) != 0) members.push_back(rank);
        if (members.size() < 2) members = parent.members;
        int index = static_cast<int>(comms_.size());
        for (int rank : parent.members)
            add(rank, Op{.what = Do::collective,
                         .peer = index,
                         .comm = parent.index,
                         .kind = Kind::create,
                         .members = members});
        comms_.push_back(Comm{index, members, false, pick(2) == 0, pick(3) == 0});
    }
    void free() {
        Comm& comm = some_comm();
        if (comm.index == 0) return;
        close(comms_[0].members);
        for (int rank : comm.members)
            add(rank, Op{.what = Do::collective, .comm = comm.index, .kind = Kind::free});
        comm.freed = true;
    }
    void action() {
        int what = pick(16);
        if (what < 8) return message();
        if (what < 11) return collective();
        if (what == 11) return creation();
        if (what == 12) return free();
        if (what < 15) return wait(pick(ranks_));
        add(pick(ranks_), Op{.what = Do::print});
    }

    std::mt19937_64& random_;
    int ranks_;
    std::vector<std::vector<Op>> ops_;
    std::vector<Comm> comms_;
    std::vector<std::vector<int>> open_;
    int handles_ = 0;
    bool synchronous_ = false;
};

}  // namespace

Program random_program(std::mt19937_64& random, int actions) { return Drawing(random, actions).program(); }

}  // namespace fermata::replay::test
