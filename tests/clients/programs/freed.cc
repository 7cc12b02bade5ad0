// SPDX-License-Identifier: MIT
// Reads freed memory through inlined functions.
#include <memory>

struct Node {
	int value;
	inline int read() const { return value; } // at: Node::read
};

static inline int peek(const Node *node)
{
	return node->read(); // at: peek
}

__attribute__((noinline)) int use(std::unique_ptr<Node> &node)
{
	const Node *raw = node.get();

	node.reset();
	return peek(raw); // at: use
}

int main()
{
	auto node = std::make_unique<Node>();

	node->value = 3;
	return use(node); // at: main
}
