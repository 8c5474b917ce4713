/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of `onnxmem help TOPIC` and of the manual page, apart from the commands. */
#include <config.h>

#include <string.h>

#include "cli/help.h"

static const om_topic topics[] = {
	{"shapes", "shapes of inputs and symbolic dims",
		"A plan requires numbers for all dims of the inputs.\n\n"
		"--input-shape x:1,3,224,224 sets the shape of an input, also written 1x3x224x224 or [1,3,224,224]; "
		"the name may be omitted if there is one input.\n\n"
		"--dim N=1 sets a symbolic dim wherever it occurs, --dim-range seq=1..512 makes a plan whose offsets serve all of these sizes, "
		"--dim-range height=320..1280:32 for every 32nd one, "
		"--default-dim 1 sets all others. A dim that remains unknown is an error that names it; `onnxmem report` has formulas then.\n\n"
		"--value sr=16000 makes an input a constant, which decides branches.\n\n"
		"`onnxmem run` takes unknown dims from its data."},
	{"report-terms", "naive, lower bound, arena, gap: the terms of a report",
		"naive: every value has its own memory.\n\n"
		"original order: peak live bytes if the ops run in the order of the file and nothing shares memory.\n\n"
		"arena: size of the plan, after views, in-place computation, scheduling and packing.\n\n"
		"lower bound: no packing of the same buffers is smaller. An arena of that size is an optimal packing: with other lifetimes, views or in-place choices, one may be "
		"smaller. It is optimal if it equals a second bound, for all such choices in this order of the ops. The gap is the excess over the lower bound.\n\n"
		"floor (`onnxmem why`): what one op needs at once, whatever the order of the ops is. Only splitting or fusing that op gets lower.\n\n"
		"Weights, inputs and outputs of the graph are outside the arena and listed separately.\n\n"
		"Sizes on the command line are in bytes, or have a suffix K, M or G: 256K are 262144 bytes."},
	{"passes", "pipelines of passes",
		"A plan is made by a pipeline of passes: `onnxmem passes` lists them, with the facts that each needs and gives, and the default pipeline. "
		"--passes sets another one: passes separated by commas, each as name, name=VALUE for its first option, or "
		"name:option=VALUE:option=VALUE. Passes that provide required facts are run automatically. --plugin FILE loads a pass from a shared object.\n\n"
		"-v shows the time and the counters of each pass, and how it changed the peak.\n\n"
		"`onnxmem dump MODEL --passes LIST` prints the program after the passes."},
	{"arenas", "budgets and several memories",
		"With --budget 256K the exit status is 3 if a run needs more: arenas, weights, and the inputs and outputs that the caller provides. "
		"--budget-of arena counts the arenas alone. The message names the step of the peak and the values that are live there.\n\n"
		"--io arena has inputs and outputs in the arena: an input from the start of the run to its last use, an output from its op to the end. "
		"--io keep does not reuse the memory of inputs. --io NAME=WHERE chooses for one of them.\n\n"
		"--arena sram=256K,align=16 --arena psram plans for several memories, fastest first: small values with much traffic "
		"go to the first one while it has space. The size of the last one may be omitted."},
	{"training", "training steps, samples, checkpoints",
		"A training step is a model whose inputs are samples, parameters and a learning rate (lr), and whose outputs are a loss and new parameters. "
		"The entry org.onnxmem.io_alias of its metadata declares which output is which input of the next step; the defaults of those inputs are the "
		"initial values. `onnxmem grad` makes a step from a model; any other model with that entry can be used.\n\n"
		"`onnxmem train STEP --data F.npz --lr X` runs it. The parameters stay at one address: "
		"new values overwrite the old ones. F.npz has a tensor for each input, by name, with the samples along its first "
		"dim. If the model does not fix the number of samples, --batch sets it, and the remainder at the end "
		"of an epoch is a smaller batch with a plan of its own; otherwise samples that do not fill a batch are "
		"dropped.\n\n"
		"--model MODEL is the model itself: --eval-data G.npz evaluates it after each epoch, by accuracy or, "
		"if the label has the shape of the output, by the mean squared error; --save writes it with its new weights.\n\n"
		"--checkpoint C.npz saves all states after each epoch, and after every N steps with --every N; the file is replaced "
		"atomically. With --resume training continues from it. The order of the samples depends on --seed and the epoch only, so "
		"an interrupted training gives bit-identical weights."},
	{"environment", "variables and files",
		"ONNX_HOME: downloaded models are in $ONNX_HOME/hub, else in $XDG_CACHE_HOME/onnx/hub, else in ~/.cache/onnx/hub.\n\n"
		"ONNXMEM_MIRRORS, ONNXMEM_MANIFEST, ONNXMEM_HF, ONNXMEM_CONFIG: mirrors, the list of models, the base of names "
		"that start with hf:, and a file that sets all of them [~/.config/onnxmem/config].\n\n"
		"ONNXMEM_PASS_PATH: folders with modules that contain further passes, separated by colons.\n\n"
		"ONNXMEM_ISA: the instruction set of the kernels, `generic`, `avx2` or `avx512`; by default the best one that "
		"the machine supports. Results of two instruction sets differ by rounding. `onnxmem --version` shows which is in use.\n\n"
		"ONNXMEM_THREADS: the number of threads of `run` and `train`, unless --threads gives it; by default the processors that "
		"the process may use. Results are the same for every number.\n\n"
		"http_proxy, https_proxy, no_proxy, CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR: proxies and certificates, as for curl.\n\n"
		"NO_COLOR: if set, no progress is shown. COLUMNS: the width of tables on a terminal."},
	{"exit-codes", "exit status of the commands",
		"0: success. 1: a check failed, results differ, verify finds no plan, a file is damaged or cannot be read or written, or shapes are inconsistent. "
		"2: usage error. 3: the budget is not met. 4: the plan does not belong to this model, or is not valid. "
		"5: unsupported model or operator. 6: download or checksum error.\n\n"
		"The last line of verify, run --expect and fetch is PASSED or FAILED."},
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
