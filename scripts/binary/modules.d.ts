/** Declares modules of better-sqlite3 that the build provides, and a package without types. */
declare module "driver:database" {
  const createDatabase: (getAddon: () => unknown, allowNativeBinding: boolean) => object
  export default createDatabase
}

declare module "driver:sqlite-error" {
  const SqliteError: new (message: string, code: string) => Error
  export default SqliteError
}

declare module "postject" {
  export const inject: (
    file: string,
    resource: string,
    data: Buffer,
    options: { readonly sentinelFuse: string }
  ) => Promise<void>
}
