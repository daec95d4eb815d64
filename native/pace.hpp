// How many threads a step is to use: all it may, or one.
//
// Two cores that share no cache, or of which another process wants one, can be slower together than
// either is alone, and which it is changes by the second.  A step gives the same bits on any number
// of threads, so one may simply try: now and then a few steps go the other way, and the quicker way
// is kept.  Trials take at most some hundredths of the time.
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
        until_trial_ -= seconds;
        ++steps_;
        // In long steps there is enough to share.
        if (steps_ < kStepsBetween || until_trial_ > 0 || usual_ > kLongest) return;
        trial_left_ = kTrialSteps;
        trial_ = std::numeric_limits<double>::infinity();
        trial_seconds_ = 0;
    }

  private:
    static constexpr int kTrialSteps = 4, kStepsBetween = 16;
    static constexpr double kLongest = 0.1;
    // How much quicker the other way has to be.
    static constexpr double kBetter = 0.95;

    void try_on(double seconds) {
        trial_seconds_ += seconds;
        // The first step finds everything in another core's cache, or a thread asleep.
        if (trial_left_ < kTrialSteps) trial_ = std::min(trial_, seconds);
        if (--trial_left_ > 0) return;
        if (trial_ < kBetter * usual_) {
            is_alone_ = !is_alone_;
            usual_ = trial_;
        }
        // One thread too few costs more than one too many does where it hinders.
        until_trial_ = (is_alone_ ? 25 : 50) * trial_seconds_;
        steps_ = 0;
    }

    std::mutex mutex_;
    bool is_alone_ = false;
    double usual_ = std::numeric_limits<double>::infinity();  // seconds of a step
    double until_trial_ = 0;                                  // seconds
    int steps_ = 0;                                           // since the last trial
    int trial_left_ = 0;                                      // steps
    double trial_ = 0, trial_seconds_ = 0;                    // the quickest of it, and all
};

}  // namespace ratoon
