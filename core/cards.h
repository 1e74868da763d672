/* How a card is recognised without asking its driver: by its PCI device id or the words of its name (matrix/cards.json). */
#ifndef FA_CARDS_H
#define FA_CARDS_H

/* "90" for the device id 0x2335 of vendor 0x10de; NULL: not in the table. Borrowed. */
const char *fa_cards_arch_by_pci(unsigned vendor, unsigned device);

/* "89" for "NVIDIA GeForce RTX 4090"; NULL: not in the table, or a name that was cut ("NVIDIA GeForce ...") and may be several.
 * Borrowed. */
const char *fa_cards_arch_by_name(const char *vendor, const char *name);

#endif
