/** Renders the guides as HTML pages, on request. */
import { marked } from "marked"
import { guides, isGuide, textOf } from "./Guides.ts"

const style = `
:root { color-scheme: light dark }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 52rem; padding: 1.5rem }
nav a { margin-right: 1rem }
pre, code { font: 14px/1.45 ui-monospace, monospace }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 6px }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 0.35rem 0.75rem 0.35rem 0; text-align: left; vertical-align: top }
`

/** Renders links to the other pages: the reference at `docs`, and each guide. */
const navigation = (docs: string): string =>
  `<nav aria-label="Documentation"><a href="${docs}">Reference</a>${Object.keys(guides)
    .map((name) => `<a href="${docs}/guides/${name}">${name}</a>`)
    .join("")}</nav>`

/** Rewrites the links between guides from files to pages. Replaces other relative links with their text, because they point into the repository. */
const linked = (docs: string, html: string): string =>
  html
    .replace(
      /<a href="([a-z-]+)\.md(#[a-z-]+)?">/g,
      (_, name: string, anchor = "") => `<a href="${docs}/guides/${name}${anchor}">`
    )
    .replace(/<a href="\.[^"]*">(.*?)<\/a>/g, "<code>$1</code>")

/** Gives each heading an id, made from its text, for links to it. */
const anchored = (html: string): string =>
  html.replace(/<h([2-6])>(.*?)<\/h\1>/g, (_, level: string, text: string) => {
    const id = text
      .replace(/<[^>]*>|&[a-z0-9#]+;/g, "")
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "")
    return `<h${level} id="${id}">${text}</h${level}>`
  })

const page = (docs: string, title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
  `<title>${title}</title><style>${style}</style></head><body>${navigation(docs)}<main>${body}</main></body></html>`

/** Renders a guide as a page, or returns `undefined` for an unknown name. `docs` is the path of the reference, for links. */
export const guidePage = (name: string, docs: string): string | undefined =>
  isGuide(name) ? page(docs, name, anchored(linked(docs, marked.parse(textOf(name), { async: false })))) : undefined

export const listPage = (docs: string): string =>
  page(
    docs,
    "Guides",
    `<h1>Guides</h1><ul>${Object.entries(guides)
      .map(([name, summary]) => `<li><a href="${docs}/guides/${name}">${name}</a>: ${summary}</li>`)
      .join("")}</ul>`
  )

/** Adds links to the guides at the top of the reference's page. */
export const withNavigation = (html: string, docs: string): string =>
  html.replace(/<body([^>]*)>/, (body) => `${body}${navigation(docs)}`)
