// Ways are which child leads to which daemon, for a daemon and for the root; and whom not to believe yet.
//
// News of one move comes by two ways, in any order: the new parent tells that a daemon has come, the old one
// that it has left. Each daemon counts its moves (its turn), so that old news is known as such. A child that
// still counts what another one counts, too, owes the word that the daemon has left it; until then its
// answers are not believed, and after that word it says them again.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "wire/message.h"

namespace fermata::tree {

class Ways {
  public:
    using Stations = std::vector<wire::Station>;
    struct News {
        bool old = false;               // another word has overtaken this one
        std::vector<int> forget;        // daemons that are not where they were: what is known of them is gone
        std::vector<int> not_believed;  // children whose answers count no more: they say them again
    };
    // By way of this child: the first of them has come, with the others below it.
    News came(int child, const Stations& stations);
    // The first has left, with the others.
    News left(int child, const Stations& stations);
    // The connection to this child has ended: who is not reached by way of it any more, itself first.
    Stations gone(int child);

    // It has come elsewhere since: a connection that says so now is one that has ended.
    bool overtaken(const wire::Station& station) const { return newer_is_known(station); }
    // -1: there is none.
    int to(int node) const;
    bool believed(int child) const;
    // Those that are not.
    std::vector<int> doubted() const;
    // All daemons that are reached, by way of any child.
    Stations all() const;

  private:
    struct Way {
        int child;
        uint32_t turn;
        uint64_t news;  // number of the word that told of it last
    };
    struct Turn {
        uint32_t turn;
        uint64_t news;  // that told of it first
    };
    bool newer_is_known(const wire::Station& station) const;
    std::map<int, Way> ways_;
    std::map<int, Turn> turns_;                    // the newest that was heard of, of each daemon
    uint64_t news_ = 0;
    std::map<int, std::map<int, uint32_t>> owes_;  // child -> daemon, and its turn when it was there
};

}  // namespace fermata::tree
