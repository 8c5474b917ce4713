/* Texts of `onnxmem help TOPIC` and of the manual page, apart from the commands. */
#include <config.h>

#include <string.h>

#include "cli/help.h"

static const om_topic topics[] = {
	{"shapes", "numbers for the dims of inputs",
		"A plan needs numbers for all dims of the inputs.\n\n"
		"--input-shape x:1,3,224,224 gives the shape of an input, also written 1x3x224x224 or [1,3,224,224]; "
		"where there is one input its name may be left out.\n\n"
		"--dim N=1 says what a symbolic dim stands for wherever it occurs, --dim-range seq=1..512 that it is planned for "
		"the largest, --default-dim 1 what all others stand for. A dim that stays open is an error that names it.\n\n"
		"`onnxmem run` takes open dims from its data."},
	{"report-terms", "naive, bound, arena, gap: the words of a report",
		"naive: every value has memory of its own.\n\n"
		"file order: most that is alive at once when the ops run as they stand in the file and nothing shares.\n\n"
		"arena: what the plan takes, after values were put in place of others, made views, ordered and packed.\n\n"
		"lower bound: what no plan can go below for this order and this sharing; where the arena equals it the plan is "
		"optimal, else feasible, and the gap says by how much it is larger.\n\n"
		"Weights, inputs and outputs of the graph are outside of the arena and told apart.\n\n"
		"Sizes on the command line are bytes, or with K, M, G: 256K are 262144 bytes."},
	{"passes", "what a plan is made by",
		"Passes run in a row: `onnxmem passes` lists them with what each needs and gives, and the default row; "
		"--passes takes another: name, name=VALUE for the first option, name:option=VALUE:option=VALUE. What a pass needs is "
		"run before it. --plugin FILE adds one of your own.\n\n"
		"-v says how long each took, what it counted, and how many bytes it saved.\n\n"
		"`onnxmem dump MODEL --passes LIST` shows what came of it as text."},
	{"arenas", "budgets, and several memories",
		"--budget 256K fails with status 3 where the plan takes more, and says what is alive where it does.\n\n"
		"--arena sram=256K,align=16 --arena psram makes a plan for several memories, the fastest first: what is hot and small "
		"goes to the first as far as it fits. The last may go without a size."},
	{"training", "steps, samples, checkpoints",
		"A step is a model that takes samples, parameters and a rate (lr), and gives a loss and new parameters. An entry of its "
		"metadata, org.onnxmem.io_alias, says which output is which input in the next step; those inputs have the values to start "
		"from as defaults. `onnxmem grad` makes a step from a model; any other model with that entry will do.\n\n"
		"`onnxmem train STEP --data F.npz --lr X` runs it. The parameters lie in one place from the first step to the last: "
		"the plan computes the new ones over the old ones. F.npz holds a tensor for each input, by name, with a sample in each "
		"place of its first dim. Where the model leaves the number of samples open, --batch sets it, and what is left at the end "
		"of an epoch is a smaller batch, planned for itself; where the model has a number, what does not fill a batch is left "
		"out.\n\n"
		"--model MODEL is the model itself: --eval-data G.npz rates it after each epoch, by the share of classes that are right or, "
		"where the label is of the output's shape, the mean of squared differences; --save writes it with its new weights.\n\n"
		"--checkpoint C.npz keeps all states after each epoch, and after every N steps with --every N; the file is there whole, or as it "
		"was. With --resume a training goes on from there. The order of the samples depends on --seed and the epoch alone, so "
		"weights are the same, bit for bit, whether it was interrupted or not."},
	{"environment", "variables and files",
		"ONNX_HOME: models that are fetched lie in $ONNX_HOME/hub, else in $XDG_CACHE_HOME/onnx/hub, else in ~/.cache/onnx/hub.\n\n"
		"ONNXMEM_MIRRORS, ONNXMEM_MANIFEST, ONNXMEM_CONFIG: where models come from, the list of them, and a file that says both "
		"[~/.config/onnxmem/config].\n\n"
		"ONNXMEM_PASS_PATH: folders with modules that hold passes beside those that are built in, with colons between.\n\n"
		"ONNXMEM_ISA: the instruction set whose kernels are used, of `generic`, `avx2` and `avx512`; without, the best that "
		"the machine has. Numbers of two instruction sets differ by rounding. `onnxmem --version` says which is in use.\n\n"
		"http_proxy, https_proxy, no_proxy, CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR: as everywhere.\n\n"
		"NO_COLOR: no progress is shown. COLUMNS: how wide a table on a terminal may be."},
	{"exit-codes", "exit status of the commands",
		"0: all is well. 1: a check failed, numbers differ, a file is damaged or cannot be read or written, shapes do not agree. "
		"2: wrong use. 3: the budget is not met. 4: the plan does not belong to this model, or is not valid. "
		"5: unsupported model or operator. 6: download or checksum.\n\n"
		"verify, run --expect and fetch end with one line PASSED or FAILED."},
};

enum { NTOPIC = sizeof topics / sizeof topics[0] };

const om_topic *
om_topic_at(size_t k)
{
	return k < NTOPIC ? &topics[k] : NULL;
}

const om_topic *
om_topic_find(const char *name)
{
	for (size_t k = 0; k < NTOPIC; k++)
		if (strcmp(topics[k].name, name) == 0)
			return &topics[k];
	return NULL;
}
