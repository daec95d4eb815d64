// How many threads a step is to use: all it may, or one.
//
// Two cores that share no cache, or of which another process wants one, can be slower together than
// either is alone, and which it is changes by the second.  A step gives the same bits on any number
// of threads, so both are tried: now and then, and whenever steps have become slower, a few of
// them go the other way, and the quicker way is kept.
#pragma once

#include <algorithm>
#include <limits>
#include <mutex>

namespace ratoon {

class Pace {
  public:
    // For the next step, of at most so many.
    int threads(int most) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return is_alone_ != (trial_left_ > 0) ? 1 : most;
    }

    // Told how long that step took.
    void took(double seconds) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (trial_left_ > 0) return try_on(seconds);
        // The quickest of late: a slower one is believed after some repetitions.
        usual_ = std::min(seconds, usual_ * 1.05);
        best_ = std::min(best_, usual_);
        until_trial_ -= seconds;
        ++steps_;
        const bool is_due = until_trial_ <= 0 || usual_ > kSlower * best_;
        // In long steps there is enough to share.
        if (!is_due || steps_ < kStepsBetween || usual_ > kLongest) return;
        trial_left_ = kTrialSteps;
        trial_ = kForever;
        trial_seconds_ = 0;
    }

  private:
    static constexpr int kTrialSteps = 4, kStepsBetween = 16;
    static constexpr double kForever = std::numeric_limits<double>::infinity();
    static constexpr double kLongest = 0.1;
    // How much quicker the other way has to be, and how much slower this one to try it.
    static constexpr double kBetter = 0.95, kSlower = 1.25;

    void try_on(double seconds) {
        trial_seconds_ += seconds;
        // The first step finds everything in another core's cache, or a thread asleep.
        if (trial_left_ < kTrialSteps) trial_ = std::min(trial_, seconds);
        if (--trial_left_ > 0) return;
        if (trial_ < kBetter * usual_) {
            is_alone_ = !is_alone_;
            usual_ = trial_;
        }
        best_ = usual_;
        // That sharing would pay again cannot be seen without trying.
        until_trial_ = (is_alone_ ? 25 : 200) * trial_seconds_;
        steps_ = 0;
    }

    std::mutex mutex_;
    bool is_alone_ = false;
    double usual_ = kForever, best_ = kForever;  // seconds of a step: of late, and since the trial
    double until_trial_ = 0;                     // seconds
    int steps_ = 0;                              // since the last trial
    int trial_left_ = 0;                         // steps
    double trial_ = 0, trial_seconds_ = 0;       // the quickest of it, and all
};

}  // namespace ratoon
