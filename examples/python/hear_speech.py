"""Find speech in a recording, window by window as it would come in: ``python hear_speech.py MODEL.onnx SOUND.wav``.

MODEL is Silero VAD for 16 kHz: a window of sound, a state and the rate to a likelihood and the next state. The WAV file
has one channel of 16 bits at 16 kHz.
"""

import sys
import wave

import neo
import numpy as np

WINDOW = 512
CONTEXT = 64  # samples of the window before that the network hears again
RATE = 16000


def windows(path):
    """The sound piece by piece, each with the end of the one before."""
    before = np.zeros(CONTEXT, np.float32)
    with wave.open(path) as file:
        while len(data := file.readframes(WINDOW)) == 2 * WINDOW:
            sound = np.frombuffer(data, "<i2").astype(np.float32) / 32768
            yield np.concatenate([before, sound])
            before = sound[-CONTEXT:]


def main(model, sound):
    """Print from when to when there is speech."""
    stream = neo.compile(model).stream()  # the state of one call is an input of the next
    rate = np.array(RATE)
    start = None
    count = 0
    for count, window in enumerate(windows(sound), 1):
        is_speech = stream(window[None], sr=rate).item() > 0.5
        now = (count - 1) * WINDOW / RATE
        if is_speech and start is None:
            start = now
        elif not is_speech and start is not None:
            print(f"{start:7.2f} s to {now:7.2f} s")
            start = None
    if start is not None:
        print(f"{start:7.2f} s to {count * WINDOW / RATE:7.2f} s")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)
