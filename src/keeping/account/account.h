// Account is the root's account of the generations that nodes keep: where they are, and which of them files
// do not have. It sends nothing and waits for nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "level/book.h"
#include "level/buddies.h"
#include "store/generation.h"
#include "wire/message.h"

namespace fermata::keeping {

struct Account {
    level::Book book;
    store::Manifest newest;                        // of the newest in memory, where that is copied
    std::vector<std::string> places;               // by rank, the node that has its image
    std::set<std::string> hosts;                   // nodes that have something
    uint64_t bytes = 0;                            // of the newest on nodes
    std::map<std::string, std::string> addresses;  // by node: where others read what is in its memory
    level::Buddies buddies;
    // A generation that was made whole again on the nodes that are left: its places, as above.
    struct {
        Generation generation;
        std::vector<std::string> places;
    } whole;
    // The words that rounds leave for each other about damage.
    struct {
        Generation doubtful;                // could not be copied to files: a node may have it damaged
        bool is_left = false;               // something is, as far as is known: no increment refers to it
        bool is_mended = false;             // the copy to files is tried again
        std::vector<Generation> to_encode;  // their parity is made anew; their images are intact
    } damage;

    // The ranks whose images a node has, by node.
    std::map<std::string, std::vector<uint32_t>> ranks_by_node() const;
    // Where others read what is in a node's memory; "" = not known.
    std::string address_of(const std::string& node) const;
    // The node that has the images of this one as well; "" = none.
    std::string buddy_of(const std::string& node) const;

    // ---- with the nodes that are there (`here`)

    // Says which node copies which ranks' images of a generation: its own, those of a node that is gone whose
    // buddy it is, and what it has rebuilt.
    std::vector<wire::Share> shares(Generation generation, const std::set<std::string>& here) const;
    // The newest that files do not have; none: nothing would be lost.
    Generation only_on_nodes(const std::set<std::string>& here) const;
    // One that is newer than that and than files, and has parity: it may be made whole again.
    Generation only_with_parity(const std::set<std::string>& here) const;
    // A line on one that is newer, and may be lost with nodes; "" = none is.
    std::string lost_with_nodes(const std::set<std::string>& here) const;
    // The places of what was made whole again; empty: there is none, or one of them is gone.
    std::vector<std::string> places_if_whole(const std::set<std::string>& here) const;
    // "the memory of a, b"; of the newest on nodes.
    std::string where() const;

  private:
    Generation newest_there(const std::set<std::string>& here) const;
    Generation newest_of_nodes(const std::set<std::string>& here) const;
};

}  // namespace fermata::keeping
