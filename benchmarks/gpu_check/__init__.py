"""What is to be found out in a few minutes on a machine with a GPU: ``tools/gpu_check.sh``, docs/gpu_check.md.

Each part runs in a process of its own, within a limit, and keeps what it found in a file, so that nothing that fails or
takes too long costs another part's results, and a second run goes on where the first one ended.
"""
