/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The words of stacks: how each frame was found, and why a walk ended.
 */
#ifndef FATHOM_TRUST_H
#define FATHOM_TRUST_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * How a frame was found, the most reliable first. Frames down to FATHOM_TRUST_SIGNAL are exact if
 * the program's tables are right; from the first later one on, all frames of a stack are guesses.
 */
enum fathom_trust {
	FATHOM_TRUST_REGISTERS = 0,     /**< the registers of the thread: the innermost frame */
	FATHOM_TRUST_CFI = 1,           /**< call frame information of the module */
	FATHOM_TRUST_JIT_CFI = 2,       /**< call frame information of JIT code */
	FATHOM_TRUST_SIGNAL = 3,        /**< the registers that a signal frame has saved */
	FATHOM_TRUST_DECODED = 4,       /**< instructions followed to the function's return */
	FATHOM_TRUST_FRAME_POINTER = 5, /**< a frame pointer that passed all checks */
	FATHOM_TRUST_SCAN = 6           /**< a return address found by looking for one */
};

/** Why a walk ended. */
enum fathom_stop {
	FATHOM_STOP_NONE = 0,       /**< it has not ended */
	FATHOM_STOP_ENTRY = 1,      /**< the outermost frame, as is proven: the stack is whole */
	FATHOM_STOP_NO_RULE = 2,    /**< nothing says how to go on, or a frame may be missing */
	FATHOM_STOP_REGISTER = 3,   /**< the rule needs a register whose value is unknown */
	FATHOM_STOP_UNREADABLE = 4, /**< the stack cannot be read here, or was not stored */
	FATHOM_STOP_CHANGED = 5,    /**< the thread ran on while it was read */
	FATHOM_STOP_LOOP = 6,       /**< the next frame would not be further out */
	FATHOM_STOP_LIMIT = 7       /**< the most frames that were asked for */
};

#ifdef __cplusplus
}
#endif

#endif
