"""What authors who answer in text share: their prompts are written here and their answers read.

wording    facts in words        request   the prompts
json_text  JSON wherever it is   ideas     ideas of an answer      novelty  those that repeat
blocks     code of an answer     patches   search/replace blocks   code     the kernel
check      is an answer usable   choice    which model is asked    author   the author
"""
