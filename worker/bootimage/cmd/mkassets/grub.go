package main

// grubModules are what the GRUB for arm64 machines that boot over HTTP has built in;
// the signed one has no http. Whatever else a boot script asked for, it would find
// nowhere.
func grubModules() []string {
	return []string{
		"efinet", "net", "http", "tftp", // our files
		"normal", "configfile", "echo", "sleep", "test", "true", "minicmd", // scripts
		"linux", "fdt", "gzio", "chain", "reboot", "halt",
		"part_gpt", "part_msdos", "fat", "search", "search_fs_file", "search_fs_uuid", "search_label", // to the disk
	}
}

// grubConfig is what that GRUB runs first. The firmware says where it came from, and
// with -p /grub that makes the prefix (http,ADDRESS:PORT)/grub.
const grubConfig = `echo "Rackstrap: asking $prefix for commands"
configfile $prefix/grub.cfg
`
