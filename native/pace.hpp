// Chooses the number of threads of a step: all that it may use, or one.
//
// Two cores that share no cache, or one of which another process uses, can be slower together than
// one of them alone, and this changes by the second.  A step gives the same bits on any number of
// threads, so both are tried: from time to time, and whenever steps have become slower, a few steps
// use the other number, and the faster one is kept.
#pragma once

#include <algorithm>
#include <limits>
#include <mutex>

namespace ratoon {

class Pace {
  public:
    // The number of threads of the next step, at most `most`.
    int threads(int most) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return is_alone_ != (trial_left_ > 0) ? 1 : most;
    }

    // Records the time of that step.
    void took(double seconds) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (trial_left_ > 0) return try_on(seconds);
        // The fastest recent step: a slower time counts after some repetitions.
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
    // How much faster the other number has to be, and how much slower this one must become to try
    // it.
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
        // Only a trial shows whether several threads have become faster again.
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
