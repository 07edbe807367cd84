#include "program.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace fermata::clock::test {

bool Program::endless() const {
    return std::any_of(threads.begin(), threads.end(), [](const Script& s) { return s.loop >= 0; });
}

bool Program::threaded() const {
    std::set<int> seen;
    for (const Script& s : threads)
        if (!seen.insert(s.rank).second) return true;
    return false;
}

bool Program::has(Do what) const {
    for (const Script& s : threads)
        for (const Op& op : s.ops)
            if (op.what == what) return true;
    return false;
}

std::string Program::text() const {
    static const char* names[] = {"coll",  "start", "finish", "spin",   "send",  "isend", "waits",  "recv",
                                  "irecv", "waitr", "recv *", "create", "group", "free",  "signal", "await"};
    std::ostringstream out;
    for (const Group& g : comms) {
        out << "  " << g.name << " = {";
        for (int m : g.members) out << ' ' << m + 1;
        out << " }" << (g.parent >= 0 ? " from " + comms[size_t(g.parent)].name : "")
            << (g.call ? " group call" : "") << "\n";
    }
    for (const Script& s : threads) {
        out << "  P" << s.rank + 1 << ":";
        for (size_t i = 0; i < s.ops.size(); i++) {
            const Op& op = s.ops[i];
            if (int(i) == s.loop) out << " [";
            out << ' ' << names[int(op.what)];
            if (op.comm >= 0) out << ' ' << comms[size_t(op.comm)].name;
            if (op.other >= 0) out << "->" << comms[size_t(op.other)].name;
            if (op.flow == Flow::from_root) out << "^" << op.root + 1;
            if (op.flow == Flow::to_root) out << "~" << op.root + 1;
            if (!op.reissuable) out << "!";
            if (op.peer >= 0) out << ' ' << op.peer + 1;
            if (op.tag) out << " t" << op.tag;
            if (op.request >= 0) out << " r" << op.request;
            out << ';';
        }
        out << "\n";
    }
    return out.str();
}

Program parse(const char* text) {
    Program p;
    std::map<std::string, int> names;
    std::istringstream statements(text);
    std::string statement;
    while (std::getline(statements, statement, ';')) {
        std::istringstream words(statement);
        std::string word;
        Script script{-1, {}, -1};
        bool script_here = false;
        while (words >> word) {
            if (auto equals = word.find('='); equals != std::string::npos) {
                Group g;
                g.name = word.substr(0, equals);
                std::istringstream list(word.substr(equals + 1));
                std::string member;
                while (std::getline(list, member, ',')) {
                    g.members.push_back(std::stoi(member) - 1);
                    p.ranks = std::max(p.ranks, g.members.back() + 1);
                }
                names[g.name] = int(p.comms.size());
                p.comms.push_back(g);
                continue;
            }
            if (word.back() == ':') {
                script.rank = std::stoi(word) - 1;
                p.ranks = std::max(p.ranks, script.rank + 1);
                script_here = true;
                continue;
            }
            Op op{Do::collective};
            if (word == "[") {
                script.loop = int(script.ops.size());
                continue;
            }
            if (word[0] == '>' || word[0] == '<') {
                op.what = word[0] == '>' ? Do::send : word == "<*" ? Do::receive_any : Do::receive;
                if (word != "<*") op.peer = std::stoi(word.substr(1)) - 1;
                if (word == "<*") op.tag = 9;
                script.ops.push_back(op);
                continue;
            }
            if (std::string("iwt!").find(word[0]) != std::string::npos) {
                op.what = word[0] == 'w' ? Do::finish : word[0] == 't' ? Do::spin : Do::start;
                op.reissuable = word[0] != '!';
                word = word.substr(1);
            }
            if (auto mark = word.find_first_of("^~"); mark != std::string::npos) {
                op.flow = word[mark] == '^' ? Flow::from_root : Flow::to_root;
                op.root = std::stoi(word.substr(mark + 1)) - 1;
                word = word.substr(0, mark);
            }
            if (!names.contains(word)) throw std::runtime_error("unknown communicator " + word);
            op.comm = names[word];
            script.ops.push_back(op);
        }
        if (script_here) p.threads.push_back(script);
    }
    // Messages to a wildcard receiver carry its tag.
    std::set<int> any;
    for (const Script& s : p.threads)
        for (const Op& op : s.ops)
            if (op.what == Do::receive_any) any.insert(s.rank);
    for (Script& s : p.threads)
        for (Op& op : s.ops)
            if (op.what == Do::send && any.contains(op.peer)) op.tag = 9;
    return p;
}

Taste random_taste(std::mt19937_64& random) {
    auto pick = [&](int below) { return int(random() % uint64_t(below)); };
    Taste t;
    t.ranks = 2 + pick(5);
    t.comms = 1 + pick(5);
    t.steps = 4 + pick(20);
    t.collectives = 1 + pick(6);
    t.messages = pick(6);
    t.nonblocking = pick(5);
    t.requests = pick(4);
    t.wildcards = pick(4) ? 0 : 1 + pick(3);
    t.polls = pick(3) ? 0 : 1 + pick(3);
    t.creations = pick(3);
    t.threads = pick(4) ? 1 : 2;
    t.signals = t.threads > 1 && pick(2) ? 2 : 0;
    t.endless = pick(3) == 0;
    return t;
}

namespace {

// Appends operations in one global order that is itself a possible execution.
class Author {
  public:
    Author(std::mt19937_64& random, const Taste& taste) : random_(random), taste_(taste) {
        p_.ranks = taste.ranks;
        for (int r = 0; r < taste.ranks; r++)
            for (int t = 0; t < taste.threads; t++) p_.threads.push_back({r, {}, -1});
        for (int c = 0; c < taste.comms; c++) add_comm(-1, some_members(all()), false);
    }
    Program write() {
        if (taste_.endless) prologue();
        for (int i = 0; i < taste_.steps; i++) step();
        close_all();
        return std::move(p_);
    }

  private:
    struct Pending {  // a non-blocking collective
        int comm;
        Op start;
        std::set<int> begun, done;
        std::map<int, int> request;
    };
    struct Message {
        int from, from_thread, to, to_thread, tag, send_request, receive_request;
        bool receive_posted, blocking_receive, send_done, receive_done;
    };

    int pick(size_t below) { return int(random_() % below); }
    std::vector<int> all() {
        std::vector<int> v;
        for (int r = 0; r < taste_.ranks; r++) v.push_back(r);
        return v;
    }
    std::vector<int> some_members(const std::vector<int>& from) {
        for (;;) {
            std::vector<int> v;
            for (int r : from)
                if (pick(2)) v.push_back(r);
            if (v.size() >= 2 || (v.size() == from.size() && !v.empty())) return v;
        }
    }
    int add_comm(int parent, std::vector<int> members, bool call) {
        Group g;
        g.name = std::string(1, char('A' + p_.comms.size() % 26)) + (p_.comms.size() >= 26 ? "'" : "");
        g.members = std::move(members);
        g.parent = parent;
        g.call = call;
        p_.comms.push_back(g);
        alive_.push_back(true);
        std::map<int, int> user;
        // The thread that makes a communicator also uses it: threads of a rank do not synchronise here.
        for (int r : p_.comms.back().members)
            user[r] = parent >= 0 ? thread_of_[size_t(parent)].at(r) : pick(size_t(taste_.threads));
        thread_of_.push_back(user);
        return int(p_.comms.size()) - 1;
    }
    Script& script(int rank, int thread) { return p_.threads[size_t(rank * taste_.threads + thread)]; }
    void emit(int rank, int thread, Op op) { script(rank, thread).ops.push_back(op); }
    void emit_on(int comm, int rank, Op op) {
        op.comm = comm;
        emit(rank, thread_of_[size_t(comm)].at(rank), op);
    }

    // Endless programs: some ranks run one round ahead in a collective-free way, so that loops are skewed.
    void prologue() {
        for (Script& s : p_.threads) s.loop = int(s.ops.size());
    }

    int some_comm() {
        std::vector<int> v;
        for (size_t c = 0; c < p_.comms.size(); c++)
            if (alive_[c] && !p_.comms[c].call) v.push_back(int(c));
        return v.empty() ? -1 : v[size_t(pick(v.size()))];
    }
    void give_flow(Op& op, int comm) {
        const auto& members = p_.comms[size_t(comm)].members;
        int kind = pick(4);
        if (kind < 2) return;
        op.flow = kind == 2 ? Flow::from_root : Flow::to_root;
        op.root = members[size_t(pick(members.size()))];
    }
    void begin_pending(Pending& n, int rank) {
        Op op = n.start;
        op.request = n.request[rank] = next_request_++;
        emit_on(n.comm, rank, op);
        n.begun.insert(rank);
    }
    // MPI: collectives of one communicator are begun in the same order everywhere.
    void begin_earlier(int comm, int rank, const Pending* until) {
        for (Pending& n : pending_) {
            if (&n == until) return;
            if (n.comm == comm && !n.begun.contains(rank)) begin_pending(n, rank);
        }
    }
    void finish_pending(Pending& n, int rank) {
        Op op = n.start;
        op.what = taste_.polls && pick(3) == 0 ? Do::spin : Do::finish;
        op.request = n.request[rank];
        op.reissuable = true;
        emit_on(n.comm, rank, op);
        n.done.insert(rank);
    }
    bool complete(const Pending& n) { return n.done.size() == p_.comms[size_t(n.comm)].members.size(); }

    void blocking(int comm, Op op) {
        for (int r : p_.comms[size_t(comm)].members) begin_earlier(comm, r, nullptr);
        for (int r : p_.comms[size_t(comm)].members) emit_on(comm, r, op);
    }
    void advance_pending(Pending& n) {
        const auto& members = p_.comms[size_t(n.comm)].members;
        if (n.begun.size() < members.size()) {
            std::vector<int> missing;
            for (int r : members)
                if (!n.begun.contains(r)) missing.push_back(r);
            int r = missing[size_t(pick(missing.size()))];
            begin_earlier(n.comm, r, &n);
            begin_pending(n, r);
            return;
        }
        std::vector<int> missing;
        for (int r : members)
            if (!n.done.contains(r)) missing.push_back(r);
        if (!missing.empty()) finish_pending(n, missing[size_t(pick(missing.size()))]);
    }
    void advance_message(Message& m) {
        if (!m.receive_posted) {
            for (Message& other :
                 messages_) {  // receives of one channel are posted in the order of its sends
                if (&other == &m) break;
                if (other.from == m.from && other.to == m.to && other.tag == m.tag && !other.receive_posted)
                    return;
            }
            m.receive_posted = true;
            Op op{m.blocking_receive ? Do::receive : Do::ireceive};
            op.peer = m.from;
            op.tag = m.tag;
            op.request = m.blocking_receive ? -1 : (m.receive_request = next_request_++);
            m.receive_done = m.blocking_receive;
            emit(m.to, m.to_thread, op);
        } else if (!m.send_done && (m.receive_done || pick(2))) {
            m.send_done = true;
            Op op{Do::wait_send};
            op.peer = m.to;
            op.tag = m.tag;
            op.request = m.send_request;
            emit(m.from, m.from_thread, op);
        } else if (!m.receive_done) {
            m.receive_done = true;
            Op op{Do::wait_receive};
            op.peer = m.from;
            op.tag = m.tag;
            op.request = m.receive_request;
            emit(m.to, m.to_thread, op);
        }
    }

    void step() {
        if (pick(3) == 0 && (!pending_.empty() || !messages_.empty())) {
            size_t i = size_t(pick(pending_.size() + messages_.size()));
            if (i < pending_.size())
                advance_pending(pending_[i]);
            else
                advance_message(messages_[i - pending_.size()]);
            return;
        }
        const Taste& t = taste_;
        int total =
            t.collectives + t.messages + t.nonblocking + t.requests + t.wildcards + t.creations + t.signals;
        int w = pick(size_t(total));
        int comm = some_comm();
        if ((w -= t.collectives) < 0) {
            if (comm < 0) return;
            Op op{Do::collective};
            give_flow(op, comm);
            blocking(comm, op);
        } else if ((w -= t.messages) < 0) {
            message(true);
        } else if ((w -= t.requests) < 0) {
            message(false);
        } else if ((w -= t.nonblocking) < 0) {
            if (comm < 0) return;
            Pending n;
            n.comm = comm;
            n.start.what = Do::start;
            n.start.reissuable = pick(6) != 0;
            give_flow(n.start, comm);
            pending_.push_back(n);
            const auto& members = p_.comms[size_t(comm)].members;
            int r = members[size_t(pick(members.size()))];
            begin_earlier(comm, r, &pending_.back());
            begin_pending(pending_.back(), r);
        } else if ((w -= t.wildcards) < 0) {
            wildcard();
        } else if ((w -= t.creations) < 0) {
            creation(comm);
        } else {
            int rank = pick(size_t(t.ranks)), thread = pick(2), flag = next_tag_++;
            Op op{Do::signal};
            op.tag = flag;
            emit(rank, thread, op);
            op.what = Do::await;
            emit(rank, 1 - thread, op);
        }
    }
    void message(bool blocking) {
        int from = pick(size_t(taste_.ranks)), to = pick(size_t(taste_.ranks));
        if (from == to) return;
        Message m{};
        m.from = from;
        m.to = to;
        m.from_thread = pick(size_t(taste_.threads));
        m.to_thread = pick(size_t(taste_.threads));
        // Threads of one process race for equal envelopes: each pair of threads has its own tags.
        m.tag = 1 + pick(2) + 4 * m.from_thread + 8 * m.to_thread;
        for (const Message& other : messages_)
            if (blocking && other.from == from && other.to == to && other.tag == m.tag &&
                !other.receive_posted)
                return;
        Op op{blocking ? Do::send : Do::isend};
        op.peer = to;
        op.tag = m.tag;
        if (!blocking) op.request = m.send_request = next_request_++;
        emit(from, m.from_thread, op);
        if (blocking) {
            op.what = Do::receive;
            op.peer = from;
            emit(to, m.to_thread, op);
            return;
        }
        m.blocking_receive = pick(2);
        messages_.push_back(m);
    }
    void wildcard() {
        if (taste_.endless)
            return;  // a fast sender's next round could take a slow one's place: a real deadlock
        int to = pick(size_t(taste_.ranks)), thread = pick(size_t(taste_.threads)), tag = 100 + next_tag_++;
        int count = 0;
        for (int r = 0; r < taste_.ranks; r++)
            if (r != to && pick(2)) {
                Op op{Do::send};
                op.peer = to;
                op.tag = tag;
                emit(r, pick(size_t(taste_.threads)), op);
                // A synchronous send blocks until its receive: keep the global order executable.
                Op receive{Do::receive_any};
                receive.tag = tag;
                emit(to, thread, receive);
                count++;
            }
    }
    void creation(int comm) {
        if (taste_.endless) return;  // a loop would make the same communicator again
        int kind = pick(3);
        if (kind == 0 && comm >= 0) {  // split
            int child = add_comm(comm, some_members(p_.comms[size_t(comm)].members), false);
            Op op{Do::create};
            op.other = child;
            blocking(comm, op);
        } else if (kind == 1) {  // create_group, maybe the same one again
            int call = -1;
            for (size_t c = 0; c < p_.comms.size(); c++)
                if (p_.comms[c].call && pick(2)) call = int(c);
            if (call < 0) call = add_comm(-1, some_members(all()), true);
            Op op{Do::group_call};
            for (int r : p_.comms[size_t(call)].members) emit_on(call, r, op);
        } else if (comm >= 0 && p_.comms.size() > 1) {  // free
            for (Pending& n : pending_)
                if (n.comm == comm && !complete(n)) return;
            Op op{Do::release};
            blocking(comm, op);
            alive_[size_t(comm)] = false;
        }
    }
    void close_all() {
        for (Pending& n : pending_)
            while (!complete(n)) advance_pending(n);
        bool open = true;
        while (open) {
            open = false;
            for (Message& m : messages_)
                if (!m.send_done || !m.receive_done) {
                    advance_message(m);
                    open = true;
                }
        }
    }

    std::mt19937_64& random_;
    const Taste& taste_;
    Program p_;
    std::vector<bool> alive_;
    std::vector<std::map<int, int>> thread_of_;
    std::vector<Pending> pending_;
    std::vector<Message> messages_;
    int next_request_ = 0, next_tag_ = 0;
};

}  // namespace

Program random_program(std::mt19937_64& random, const Taste& taste) { return Author(random, taste).write(); }

}  // namespace fermata::clock::test
