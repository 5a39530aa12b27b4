"""What several tests share: catalogues, contexts, files, tables, tasks, workers."""
