// One non-zero of a sparse sample and the connections of its feature.  Rows belong to outputs, and
// y and dy point to the sample's lane.
#pragma once

// y[output] += w * z, as the forward pass by rows does it: a prediction must not depend on which of
// the two was taken.
template <typename T>
void forward_non_zero(const Packed* outputs, const T* weights, Index n, T z, T* y, Index lanes) {
    for (Index k = 0; k < n; ++k) y[Index(outputs[k]) * lanes] += weights[k] * z;
}

// gradient += dy[output] * z.
template <typename T>
void backward_non_zero(const Packed* outputs, Index n, T z, const T* dy, Index lanes,
                       T* gradients) {
    for (Index k = 0; k < n; ++k) gradients[k] += dy[Index(outputs[k]) * lanes] * z;
}
