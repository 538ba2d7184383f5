#pragma once

namespace neo::fuzz {

// How far an input got.
enum class Reached {
  Nothing,   // its envelope was refused: lengths, header, blobs
  Envelope,  // the envelope held, what it says was refused
  Loaded,    // it loaded, and its run was refused or failed
  Ran,
};

// Adds one to the counts in the file that NEO_FUZZ_COUNTS names: four numbers of eight bytes, by Reached. They are
// there also when the process dies at its next input. Without a file nothing is counted.
void count(Reached reached);

}  // namespace neo::fuzz
