"""Selection schemes: any suitable function of deap.tools by name, or one file here."""
