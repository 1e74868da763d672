/* The compiler gate: what PYTORCH_NVCC points at. `fainstall-worker` called under the name "nvcc" runs fa_gate_main. Admits
 * units by memory, longest first, runs the real nvcc, records time and peak memory of each. How the gate of all units of one
 * build, and of two builds on one machine, agree is told in gate.c. */
#ifndef FA_GATE_H
#define FA_GATE_H

int fa_gate_main(int argc, char **argv);

#endif
