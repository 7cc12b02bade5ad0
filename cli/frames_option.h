/* SPDX-License-Identifier: MIT */
/* The option --frames, of verbs that show stacks. */
#ifndef FATHOM_CLI_FRAMES_OPTION_H
#define FATHOM_CLI_FRAMES_OPTION_H

enum frames_option {
	FRAMES_MERGED, /* those of the script among native ones; the interpreter's own are not shown
			*/
	FRAMES_SCRIPT, /* those of the script */
	FRAMES_NATIVE,
	FRAMES_ALL
};

/* Returns the kind of frames called @text; complains and exits if there is none. */
enum frames_option parse_frames(const char *text);

#endif
