/* The saved module, as it is in its file. */
  .section .rodata.neo_model, "a"
  .globl neo_embedded_begin
  .globl neo_embedded_end
  .hidden neo_embedded_begin
  .hidden neo_embedded_end
  .balign 64
neo_embedded_begin:
  .incbin NEO_MODEL_FILE
neo_embedded_end:
  .byte 0
  .section .note.GNU-stack, "", %progbits
