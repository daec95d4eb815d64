// The thread pool: bounded spinning, then sleep; tasks are taken one by one.
//
// A training step has about ten short parallel sections.  Barriers that spin for long are very slow
// if another process uses the cores; barriers that sleep at once cost 10-30 % if none does; so a
// worker spins some tens of microseconds and then sleeps.  The caller works too, and waits for
// *tasks*, not for workers: one that never woke up causes no delay.
//
// Tasks must not depend on the thread that runs them.  Then results are the same on any number of
// threads.
#pragma once

#include <functional>

#include "common.hpp"

namespace ratoon {

using Task = std::function<void(Index)>;

// Run task(0) .. task(n_tasks - 1) on at most n_threads threads, the caller among them.  The first
// exception a task throws is thrown here once all tasks have ended.  If another thread of this
// process already uses the pool, or threads cannot be started, the caller does all the work itself.
void parallel_for(Index n_tasks, int n_threads, const Task& task);

// How many threads the pool has started in this process (for tests and reports).
int pool_size();

}  // namespace ratoon
