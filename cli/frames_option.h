/* SPDX-License-Identifier: MIT */
/* The option --frames, of verbs that show stacks. */
#ifndef FATHOM_CLI_FRAMES_OPTION_H
#define FATHOM_CLI_FRAMES_OPTION_H

enum frames_option {
	FRAMES_MERGED, /* of the script among native ones, without the interpreter's own */
	FRAMES_SCRIPT, /* of the script alone */
	FRAMES_NATIVE,
	FRAMES_ALL
};

/* Returns the kind of frames called @text; complains and exits if there is none. */
enum frames_option parse_frames(const char *text);

#endif
