// Keeper is the root's part of generations that nodes keep, in memory or in local directories: which level
// the next one goes to, when copies are made, what is mended, and from which copy a restart goes on. It has a
// list of rounds (account/round.h), asks them in one loop, and waits for nothing.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/means.h"
#include "keeping/account/round.h"
#include "keeping/levels/file_copies.h"
#include "keeping/repair/last_copy.h"
#include "keeping/repair/mending.h"
#include "keeping/restart/restart_choice.h"

namespace fermata::keeping {

class Keeper {
  public:
    // `settings`: of the job; levels that are chosen by measuring change their periods there.
    Keeper(Settings& settings, store::Store& store, Nodes& nodes);

    bool on() const { return static_cast<bool>(means_.settings.levels); }
    // Something of this job may be on nodes.
    bool in_use() const { return on() || !means_.account.hosts.empty(); }
    AutoLevels& planned() { return means_.planned; }
    // Takes an answer; false: nobody here has asked for it.
    bool heard(const wire::Message& message);

    // ---- a checkpoint

    // The level where the next generation goes, unless it is to last.
    store::LevelName first_level() const;
    // `ranks` will save; none: all.
    void ask_for_room(uint32_t epoch, Generation generation, Medium medium, const tree::Ranks& ranks = {});
    // "": every node has room, or not all have answered yet.
    std::string why_no_room() const;
    bool room_everywhere() const;
    // The generation that images of the next one may refer to; none: they are whole.
    Generation base_at(store::LevelName level) const;
    // Notes the new generation; others that are not needed any more go.
    void committed(const store::Manifest& manifest, int64_t now);
    // Has nodes remove all that is not needed any more, also what was never committed.
    void clean_up();

    // ---- copies

    // The job has all its ranks: each level looks for places on the nodes.
    struct Placed {
        std::string refusal;             // why a first start is none: the first level that cannot be had
        std::vector<std::string> lines;  // what people are told when the job goes on
    };
    Placed place();
    // Ends rounds that are over, begins those that are due.
    void turn(int64_t now);
    // The same of copies to files, and ends others that go to a directory outside: the job ends.
    void turn_of_files(int64_t now);
    // Connections of the tree have ended: orders may not have reached all daemons.
    void roll_is_called() { say_again_ = true; }
    // Begins to copy the newest to files as fast as it can be, once nothing else is under way there.
    void copy_newest_now(int64_t now);
    bool is_copying_to_files() const;
    const FileCopies& copies_to_files() const { return files_; }

    // ---- the end of a job

    // The newest that nodes have and files have not; none: nothing would be lost.
    Generation only_on_nodes() const { return means_.account.only_on_nodes(means_.nodes.hosts()); }
    // One that is newer than that and than files, and has parity: it may be made whole again.
    Generation only_with_parity() const { return means_.account.only_with_parity(means_.nodes.hosts()); }
    LastCopy& last_copy() { return last_copy_; }
    bool in_files(Generation generation) const {
        return means_.account.book.has(generation, store::LevelName::files);
    }
    // A line on a newer one that may be lost with nodes; "" = none is.
    std::string lost_with_nodes() const { return means_.account.lost_with_nodes(means_.nodes.hosts()); }
    // Leaves nothing on nodes: files have what is newer, or nobody will need it.
    void forget();
    // "the memory of a, b"; of the newest there.
    std::string where() const { return means_.account.where(); }

    Mending& mending() { return mending_; }
    RestartChoice& restart() { return restart_; }
    // Takes over what the restart has chosen.
    void restarted();

    // The JSON of `fermata status`.
    nlohmann::json status() const;

  private:
    Moment moment(int64_t now) const;
    bool turn_of(Round& round, int64_t now);
    void keep(const std::vector<Generation>& memory, const std::vector<Generation>& local);

    Means means_;
    FileCopies files_{means_};
    std::vector<std::unique_ptr<Copies>> levels_;  // files among them not
    Mending mending_{means_};
    RestartChoice restart_{means_};
    LastCopy last_copy_{means_};
    std::vector<Round*> rounds_;  // all of these, in the order of their turns
    bool say_again_ = false;
    uint32_t epoch_ = 0;  // of the room that was asked for
    std::map<std::string, wire::Room> rooms_;
    std::set<std::string> asked_hosts_;
};

}  // namespace fermata::keeping
