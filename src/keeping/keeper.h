// Keeper is the root's account of generations that nodes keep, in memory or in local directories: which
// level the next one goes to, what nodes have answered, where copies are, and from which one a
// restart goes on. It sends by a function, waits for nothing, and is asked again when something has been
// heard.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/auto_levels.h"
#include "keeping/account/settings.h"
#include "keeping/levels/buddy_copies.h"
#include "keeping/levels/file_copies.h"
#include "keeping/levels/local_copies.h"
#include "keeping/levels/parity_rounds.h"
#include "keeping/repair/last_copy.h"
#include "keeping/repair/mending.h"
#include "keeping/restart/restart_choice.h"
#include "level/book.h"
#include "level/levels.h"
#include "store/store.h"
#include "tree/tree.h"

namespace fermata::keeping {

class Keeper {
  public:
    using Send = std::function<void(const wire::Message&)>;

    Keeper(const Settings& settings, AutoLevels& planned, store::Store& store, const tree::Tree& tree,
           Send send);

    bool on() const { return static_cast<bool>(settings_.levels); }
    // Something of this job may be in memory.
    bool in_use() const { return on() || !hosts_.empty(); }
    // False: it is none of these messages.
    bool heard(const wire::Message& message);

    // ---- a checkpoint
    // The level where the next generation goes, unless it is to last.
    store::LevelName first_level() const;
    void ask_for_room(uint32_t epoch, Generation generation, Medium medium);
    // "": every node has room, or not all have answered yet.
    std::string why_no_room() const;
    bool room_everywhere() const;
    // What the images of the next generation may refer to.
    Generation base_at(store::LevelName level) const {
        return damage_ && level != store::LevelName::files ? Generation() : book_.base_at(level);
    }
    // What is not needed any more goes: the uncommitted, too.
    void committed(const store::Manifest& manifest, int64_t now);
    void clean_up();

    // ---- second copies in the memory of other nodes
    // Why there can be none, and why there can be no parity; "" = there can, or nobody wants any.
    struct Pairing {
        std::string no_buddies, no_parity;
    };
    // All ranks are there.
    Pairing pair_up();
    const std::string& warning() const { return buddies_.warning(); }

    // ---- copies to files
    // Begins copies that are due, ends those that are done.
    void turn(int64_t now);
    // Only those to files: the job ends.
    void turn_of_files(int64_t now);
    // Of the newest on nodes, as fast as it can be; busy() until that is over.
    void copy_newest_now();
    bool busy() const { return files_.busy(); }
    Generation copying() const { return files_.under_way(); }
    bool copy_failed() const { return files_.failed(); }  // the last one
    // Newest on nodes, those that are there, that is not in files; none: nothing would be lost.
    Generation only_on_nodes() const;
    // One that is newer than that and than files, and has parity: it may be made whole again.
    Generation only_with_parity() const;
    LastCopy& last_copy() { return last_copy_; }
    // Something of that one was not intact where it was, and is there now.
    bool made_whole() const;
    bool in_files(Generation generation) const { return book_.has(generation, store::LevelName::files); }
    // A newer one may be lost with nodes: one line; "" = none is.
    std::string lost_with_nodes() const;
    // Nothing stays on nodes: files have what is newer, or nobody will need it.
    void forget();
    // "the memory of a, b"; of the newest there.
    std::string where() const;

    // ---- damage
    // All copies are looked at, or those of one generation and of what it needs, and mended; `client` has
    // asked for it; -1: nobody has, a copy has found damage.
    void mend(Generation only, int client);
    Mending& mending() { return mending_; }

    // ---- a restart
    RestartChoice& restart() { return restart_; }
    // It has chosen.
    void restarted();
    // Connections of the tree have ended: what was told to daemons may not have reached all of them.
    void roll_is_called() { say_again_ = true; }

    nlohmann::json status() const;

  private:
    std::set<std::string> hosts_with_ranks() const;
    Generation newest_there() const;
    Generation newest_of_nodes() const;
    void turn_of_buddies(int64_t now);
    void turn_of_local(int64_t now);
    BuddyCopies::What newest_of(std::vector<Generation> generations) const;
    void turn_of_parity(int64_t now);
    void turn_of_mending(int64_t now);
    void tell(const RoundOver& over, const char* done, const char* failed, std::string& trouble);
    void keep(const std::vector<Generation>& memory, const std::vector<Generation>& local);
    std::vector<wire::Share> shares(Generation generation) const;

    const Settings& settings_;
    AutoLevels& planned_;
    store::Store& store_;
    const tree::Tree& tree_;
    const Send send_;
    level::Book book_;
    std::set<std::string> hosts_;      // that have something
    std::vector<std::string> places_;  // by rank: which of them has its image
    uint32_t epoch_ = 0;               // of the room that was asked for
    std::map<std::string, wire::Room> rooms_;
    std::set<std::string> asked_hosts_;
    uint64_t bytes_ = 0;  // of the newest on nodes
    FileCopies files_{settings_, planned_, store_, book_, send_};
    bool say_again_ = false;
    uint32_t fetches_ = 0;
    std::map<std::string, std::string> addresses_;  // by node: where others read what is in its memory
    store::Manifest newest_;                        // of the newest in memory, where that is copied
    BuddyCopies buddies_{settings_, send_, fetches_};
    std::string trouble_;  // with buddies, that was said
    LocalCopies local_{settings_, send_, fetches_};
    std::string local_trouble_;  // that was said
    ParityRounds parity_{settings_, send_};
    std::string parity_trouble_;  // that was said
    RestartChoice restart_{settings_, store_, tree_, send_, fetches_};
    bool damage_ = false;   // that could not be mended, it may be; nothing new has come to nodes since
    Generation looked_at_;  // the newest that was in doubt, and was looked at
    LastCopy last_copy_{store_, tree_, send_, fetches_};
    Mending mending_{settings_, store_, tree_, send_, fetches_};
};

}  // namespace fermata::keeping
