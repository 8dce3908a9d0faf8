/** Splits the OpenAPI document by tag, so that diffs show which endpoint changed. */
import type { OpenApi } from "@effect/platform"

type Parts = Record<string, unknown>

const referenced = (value: unknown): ReadonlyArray<string> =>
  Array.from(JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g), ([, name]) => name!)

/** Maps each schema's name to the tags of the endpoints that use it, directly or indirectly. */
const tagsOf = (paths: ReadonlyMap<string, Parts>, schemas: Parts): ReadonlyMap<string, ReadonlySet<string>> => {
  const tags = new Map<string, Set<string>>()
  const reach = (name: string, tag: string): void => {
    const found = tags.get(name) ?? new Set()
    if (found.has(tag)) return
    tags.set(name, found.add(tag))
    for (const next of referenced(schemas[name])) reach(next, tag)
  }
  for (const [tag, endpoints] of paths) for (const name of referenced(endpoints)) reach(name, tag)
  return tags
}

/**
 * Returns the parts as JSON, by name. A tag's part contains its endpoints and the schemas that only this tag uses. `shared` contains all other
 * schemas.
 */
export const byTag = (document: OpenApi.OpenAPISpec): ReadonlyMap<string, string> => {
  const { components, paths, ...rest } = document
  const endpoints = new Map<string, Parts>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0]!
      endpoints.set(tag, { ...endpoints.get(tag), [`${method.toUpperCase()} ${path}`]: operation })
    }
  }
  const tags = tagsOf(endpoints, components.schemas)
  const schemasOf = (isWanted: (tags: ReadonlySet<string> | undefined) => boolean): Parts =>
    Object.fromEntries(Object.entries(components.schemas).filter(([name]) => isWanted(tags.get(name))))
  const parts = [...endpoints].map(
    ([tag, own]) => [tag, { endpoints: own, schemas: schemasOf((used) => used?.size === 1 && used.has(tag)) }] as const
  )
  const shared = { ...rest, components: { ...components, schemas: schemasOf((used) => used?.size !== 1) } }
  return new Map(
    [...parts, ["shared", shared] as const].map(([name, part]) => [name, `${JSON.stringify(part, null, 1)}\n`])
  )
}
