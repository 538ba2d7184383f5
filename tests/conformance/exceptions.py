"""Which of ONNX's backend cases neo does not run as they are, and why. Every other case must pass."""

from __future__ import annotations

__all__ = ["RANDOM", "REFUSED", "TOLERANCES"]

# Case names (patterns) that neo refuses by name.
REFUSED = {
    "test_adagrad*": "the training domain",
    "test_adam*": "the training domain",
    "test_momentum*": "the training domain",
    "test_nesterov_momentum": "the training domain",
    "test_gradient_of_*": "the training domain",
    "test_image_decoder_decode_*": "image decoding",
}

# Cases whose outcome is random: type and shape are compared, and that a Bernoulli trial gives 0 or 1.
RANDOM = {
    "test_bernoulli*": "a random outcome",
    "test_training_dropout": "a random outcome",
    "test_training_dropout_mask": "a random outcome",
    "test_training_dropout_default*": "a random outcome",
}

# Cases whose expected values are rounded more coarsely than their own tolerance: (rtol, atol, why).
TOLERANCES = {
    "test_attention_4d_causal_fp16_expanded": (2e-3, 1e-7, "every step of its Softmax is expected in float16"),
    "test_dft_inverse": (1e-3, 1e-6, "zeros are expected as 2e-7, float32's rounding of sums of 10"),
    "test_dft_inverse_opset19": (1e-3, 1e-6, "zeros are expected as 2e-7, float32's rounding of sums of 10"),
}
# The same on a device.
DEVICE_TOLERANCES = {
    "test_attention_*_fp16": (2e-3, 1e-7, "between the steps of its function a device holds float16"),
}
