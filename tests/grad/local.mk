# Gradients of operators, and of whole models, beside PyTorch's, where it is.
TESTS += tests/grad/ragged.test tests/grad/rules.test tests/grad/tags.test tests/grad/functions.test tests/grad/info.test
EXTRA_DIST += %D%/functions.py %D%/functions.test %D%/grad.py %D%/info.py %D%/info.test %D%/ragged.py %D%/ragged.test %D%/rules.py %D%/rules.test \
	%D%/models.py %D%/nets.py %D%/tags.py %D%/tags.test %D%/tolerance.py %D%/torch.sh %D%/torch_reference.py
