#pragma once

// Activation functions that operators of several families apply.

namespace neo {

double sigmoid(double x);
double softplus(double x);

}  // namespace neo
