/**
 * uid and gid of the agent inside every container. The image has a user of it, and files of snapshots belong to it (plus the user
 * namespace's base, where the engine has one); no passwd entry is needed.
 */
export const AGENT_UID = 10_001;
