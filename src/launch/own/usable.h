// Usable hosts are those of a job's list that it may start ranks on now: not one that was lost and does not
// answer, and not one that is kept as a spare.
#pragma once

#include <string>
#include <vector>

#include "launch/own/hosts.h"
#include "launch/plan.h"

namespace fermata::launch::own {

// ssh, or what FERMATA_SSH says, without the host. Throws Error (exit code 2) when that names no program.
std::vector<std::string> ssh_words();

// Which of `hosts` have to be asked whether they live: those that a suspect names, by the name they have in
// the list or that they call themselves; when a suspect names none, all but this machine.
std::vector<std::string> to_be_asked(const std::vector<Host>& hosts,
                                     const std::vector<std::string>& suspects);
// Which of these do not let a program run within ten seconds.
std::vector<std::string> silent_hosts(const std::vector<std::string>& hosts);

// `hosts` without the silent ones, and without as many of the last ones as are spares and not needed yet:
// each host that was lost takes one of them. Throws Error: none is left (exit code 1), or all are spares (2).
std::vector<Host> usable(std::vector<Host> hosts, const std::vector<std::string>& silent, unsigned spares);

}  // namespace fermata::launch::own
