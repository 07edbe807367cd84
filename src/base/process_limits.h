// These two functions set and give back the limits of Fermata's own processes. They hold many connections and
// the job's key, so they may open as many files as the hard limit allows and leave no core, not even by a
// pipe; what they start gets back the user's limits.
#pragma once

namespace fermata {

// Sets the limits of this process from now on. A second call does nothing.
void take_own_limits();
// Gives a child of such a process the user's limits back; to be called before exec.
void give_back_limits();

}  // namespace fermata
