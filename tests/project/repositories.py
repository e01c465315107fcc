"""Repositories for tests that are not about what agents are given."""

from ctx.layout import project_at
from ctx.project.given import EverythingGiven
from ctx.project.project_repository import ProjectRepository


def repository_at(folder: str) -> ProjectRepository:
    project = project_at(folder)
    return ProjectRepository(project, EverythingGiven(folder, project))
